import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keysOf } from "../../../shared/credits/holds.ts";
import { revokeToken } from "../../../shared/organizations/tokens.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { forgetSignIns, type LiveEvent, PageVisitor } from "../../harness/clients/page-visitor.ts";
import { type Api, Service } from "../../harness/processes/service.ts";

/** The stream that keeps an open billing page up to date, without a browser. */

let service: Service;
let api: Api;
beforeAll(async () => {
  service = await Service.start();
  const [first] = service.apis;
  if (!first) throw new Error("no API");
  api = first;
});
afterAll(() => service.stop());

async function signedIn() {
  const organization = await service.organization();
  const visitor = new PageVisitor(service);
  await forgetSignIns(service);
  await visitor.signIn(organization.token);
  return { organization, visitor };
}

/** Reads on until an event is the one; `undefined` where the stream ends before. */
async function untilEvent(
  events: AsyncGenerator<LiveEvent>,
  isIt: (event: LiveEvent) => boolean,
): Promise<LiveEvent | undefined> {
  for (;;) {
    const { value, done } = await events.next();
    if (done) return undefined;
    if (isIt(value)) return value;
  }
}

const openStreams = async () => (await Exposition.of(api)).value("live_streams_open");

test("what a search does to the account arrives in every part of the page", async () => {
  const { organization, visitor } = await signedIn();
  const { events } = await visitor.follow();
  const first = [(await events.next()).value?.id, (await events.next()).value?.id, (await events.next()).value?.id];
  expect(new Set(first)).toEqual(new Set(["credit", "history", "usage"]));

  const { body } = await service.search(organization.token, { keyword: "coffee" });
  const history = await untilEvent(events, ({ id, html }) => id === "history" && !!html?.includes(body.requestId));
  expect(history?.html).toContain("Charged");
  const credit = await untilEvent(events, ({ id }) => id === "credit");
  expect(credit?.html).toContain("$0.995");
  await events.return(undefined);
  await service.until(async () => (await openStreams()) === 0);
});

test("opening a stream takes one request of the window, and what it sends takes none", async () => {
  const organization = await service.organization({ terms: { windowSeconds: 1_000_000 } });
  const visitor = new PageVisitor(service);
  await visitor.signIn(organization.token);
  const used = async () => Number(await service.redis.get(keysOf(organization.organizationId).window));
  const { events } = await visitor.follow();
  expect(await used()).toBe(1);
  const { body } = await service.search(organization.token, { keyword: "coffee" });
  await untilEvent(events, ({ id, html }) => id === "history" && !!html?.includes(body.requestId));
  expect(await used()).toBe(2);
  await events.return(undefined);
});

test("whoever reads an older page keeps it, while the figures go on", async () => {
  const { organization, visitor } = await signedIn();
  const { events } = await visitor.follow("?before=1");
  await service.search(organization.token, { keyword: "coffee" });
  const seen: (string | undefined)[] = [];
  await untilEvent(events, ({ id, html }) => seen.push(id) > 2 && id === "credit" && !!html?.includes("$0.995"));
  expect(seen).not.toContain("history");
  await events.return(undefined);
});

test("a stream ends with its session, whether that is signed out or its token revoked", async () => {
  for (const end of ["signed out", "revoked"]) {
    const { organization, visitor } = await signedIn();
    const { events } = await visitor.follow();
    await events.next();
    if (end === "signed out") await visitor.post("/billing/sign-out", {});
    else await revokeToken(service.database, organization.tokenId);
    expect(await untilEvent(events, ({ event }) => event === "over")).toBeDefined();
    expect((await events.next()).done).toBe(true);
  }
});

test("a page that comes back to a session that is over is told so in the stream", async () => {
  const revoked = await signedIn();
  const { events } = await revoked.visitor.follow();
  await revokeToken(service.database, revoked.organization.tokenId);
  await untilEvent(events, ({ event }) => event === "over");
  const signedOut = await signedIn();
  const stale = new PageVisitor(service, { cookie: signedOut.visitor.cookie ?? "" });
  await signedOut.visitor.post("/billing/sign-out", {});
  for (const someone of [revoked.visitor, stale, new PageVisitor(service)]) {
    const { status, headers, text } = await someone.get("/billing/live");
    expect({ status, text }).toEqual({ status: 200, text: "event: over\ndata:\n\n" });
    expect(headers.get("content-type")).toBe("text/event-stream");
    expect(headers.get("cache-control")).toBe("no-store");
  }
});

test("a session has five streams at most, and gets its place back", async () => {
  const { visitor } = await signedIn();
  const streams = [];
  for (let nth = 0; nth < 5; nth += 1) streams.push(await visitor.follow());
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(await openStreams()).toBe(5);
  const sixth = await visitor.get("/billing/live");
  expect(sixth.status).toBe(429);
  expect(sixth.headers.get("retry-after")).toBe("30");
  // Another browser is not affected.
  const other = (await signedIn()).visitor;
  const { status, events } = await other.follow();
  expect(status).toBe(200);
  for (const stream of [...streams, { events }]) {
    await stream.events.next();
    await stream.events.return(undefined);
  }
  await service.until(async () => (await openStreams()) === 0);
});

test("whoever hangs up while a stream is opened keeps no place", async () => {
  const { visitor } = await signedIn();
  const hungUp = () => api.lines.filter(({ route, status }) => route === "/billing/live" && status === 499).length;
  const before = hungUp();
  // Opening asks Redis, which answers none of them before they are gone.
  await service.redis.client("PAUSE", 1_000);
  for (let nth = 0; nth < 5; nth += 1) {
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    socket.end(`GET /billing/live HTTP/1.1\r\nHost: a\r\nCookie: ${visitor.cookie}\r\n\r\n`);
  }
  await service.until(async () => hungUp() === before + 5);
  const leaving = new AbortController();
  await service.until(async () => (await visitor.follow("", leaving.signal)).status === 200);
  leaving.abort();
  await service.until(async () => (await openStreams()) === 0);
  expect(hungUp()).toBe(before + 5);
});

test("an API that stops ends its streams at once, and stops cleanly", async () => {
  const stopping = await service.startApi();
  const { visitor } = await signedIn();
  visitor.api = service.apis.indexOf(stopping);
  const { events } = await visitor.follow();
  await events.next();
  const stopped = stopping.stop();
  expect(await untilEvent(events, () => false)).toBeUndefined();
  expect(await stopped).toBe(0);
  expect(stopping.errors).toEqual([]);
});

test("a stream ends when Redis goes, and the page can come back", async () => {
  const { visitor } = await signedIn();
  const { events } = await visitor.follow();
  await events.next();
  const { port } = service.redisServer;
  await service.redisServer.stop();
  expect(await untilEvent(events, () => false).catch(() => undefined)).toBeUndefined();
  await service.restartRedis(port);
  await service.until(async () => (await openStreams()) === 0);
});

import { connect } from "node:net";
import { expect, test } from "vitest";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { revokeToken } from "../../../api/tokens/tokens.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { type LiveEvent, PageVisitor, signedIn } from "../../harness/clients/page-visitor.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The stream of live updates, without a browser. outages.test.ts has its end with its API and with Redis. */

const service = await usualService();
const [api] = service.apis;
if (!api) throw new Error("no API");

type SignedIn = Awaited<ReturnType<typeof signedIn>>;

/** Reads events until one matches; undefined if the stream ends first. */
async function untilEvent(
  events: AsyncGenerator<LiveEvent>,
  matches: (event: LiveEvent) => boolean,
): Promise<LiveEvent | undefined> {
  for (;;) {
    const { value, done } = await events.next();
    if (done) return undefined;
    if (matches(value)) return value;
  }
}

const openStreams = async () => (await Exposition.of(api)).value("live_streams_open");

test("a search appears in every section of the open page, and one that fails although it changes no balance", async () => {
  const { organization, person } = await signedIn(service);
  const { events } = await person.follow();
  const first = new Set<string | undefined>();
  while (first.size < 4) first.add((await events.next()).value?.id);
  expect(first).toEqual(new Set(["credit", "latest", "low-balance", "usage"]));

  const { body } = await service.search(organization.token, { keyword: "coffee" });
  const latest = await untilEvent(events, ({ id, html }) => id === "latest" && !!html?.includes(body.requestId));
  expect(latest?.html).toContain("Charged");
  const credit = await untilEvent(events, ({ id }) => id === "credit");
  expect(credit?.html).toContain("$0.995");

  const failed = await service.search(organization.token, { keyword: "coffee sandbox:error" });
  expect(failed.status).toBe(502);
  const isListed = ({ id, html }: LiveEvent) => id === "latest" && !!html?.includes(failed.body.requestId);
  expect(await untilEvent(events, isListed)).toBeDefined();
  await events.return(undefined);
  await service.until(async () => (await openStreams()) === 0);
});

test("a stream and its updates take nothing of the program's rate window", async () => {
  const organization = await service.organization({ terms: { windowSeconds: 1_000_000 } });
  const person = new PageVisitor(service);
  await person.signIn(organization.token);
  const used = async () => Number(await service.redis.get(keysOf(organization.organizationId).window));
  const { events } = await person.follow();
  expect(await used()).toBe(0);
  const { body } = await service.search(organization.token, { keyword: "coffee" });
  await untilEvent(events, ({ id, html }) => id === "latest" && !!html?.includes(body.requestId));
  expect(await used()).toBe(1);
  await events.return(undefined);
});

test("an open page with older searches keeps them, and the newest page has each search as it comes", async () => {
  const { organization, person } = await signedIn(service);
  const newest = await person.follow("/billing/searches/live?show=charged");
  const older = await person.follow("/billing/searches/live?show=charged&before=1.0");
  const { body } = await service.search(organization.token, { keyword: "coffee" });
  await untilEvent(newest.events, ({ id, html }) => id === "history" && !!html?.includes(body.requestId));
  await person.post("/billing/sign-out", {});
  // The end of the session is all that reaches the older page.
  expect(await older.events.next()).toMatchObject({ value: { event: "over" } });
  await newest.events.return(undefined);
});

test("a stream ends with its session, after a sign-out and after a revocation of its token", async () => {
  const ends = {
    signOut: ({ person }: SignedIn) => person.post("/billing/sign-out", {}),
    revocation: ({ organization }: SignedIn) => revokeToken(service.database, organization.tokenId),
  };
  await Promise.all(
    Object.values(ends).map(async (end) => {
      const payer = await signedIn(service);
      const { events } = await payer.person.follow();
      await events.next();
      await end(payer);
      expect(await untilEvent(events, ({ event }) => event === "over")).toBeDefined();
      expect((await events.next()).done).toBe(true);
    }),
  );
});

test("a page that reconnects after its session has ended gets an event that says so", async () => {
  const revoked = await signedIn(service);
  const { events } = await revoked.person.follow();
  await revokeToken(service.database, revoked.organization.tokenId);
  await untilEvent(events, ({ event }) => event === "over");
  const signedOut = await signedIn(service);
  const stale = new PageVisitor(service, { cookie: signedOut.person.cookie ?? "" });
  await signedOut.person.post("/billing/sign-out", {});
  for (const someone of [revoked.person, stale, new PageVisitor(service)]) {
    const { status, headers, text } = await someone.get("/billing/live");
    expect({ status, text }).toEqual({ status: 200, text: "event: over\ndata:\n\n" });
    expect(headers.get("content-type")).toBe("text/event-stream");
    expect(headers.get("cache-control")).toBe("no-store");
  }
});

test("a session has at most five streams, and a closed one frees its slot", async () => {
  const { person } = await signedIn(service);
  await service.until(async () => (await openStreams()) === 0);
  const streams = [];
  for (let nth = 0; nth < 5; nth += 1) streams.push(await person.follow());
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(await openStreams()).toBe(5);
  const sixth = await person.get("/billing/live");
  expect(sixth.status).toBe(429);
  expect(sixth.headers.get("retry-after")).toBe("30");
  // Another browser is not affected.
  const other = (await signedIn(service)).person;
  const { status, events } = await other.follow();
  expect(status).toBe(200);
  for (const stream of [...streams, { events }]) {
    await stream.events.next();
    await stream.events.return(undefined);
  }
  await service.until(async () => (await openStreams()) === 0);
});

test("a browser that disconnects while a stream is opened keeps no slot", async () => {
  const { person } = await signedIn(service);
  const disconnected = () =>
    api.lines.filter(({ route, status }) => route === "/billing/live" && status === 499).length;
  const before = disconnected();
  // Opening a stream reads from Redis, which is paused until all callers have disconnected.
  await service.redis.client("PAUSE", 1_000);
  for (let nth = 0; nth < 5; nth += 1) {
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    socket.end(`GET /billing/live HTTP/1.1\r\nHost: a\r\nCookie: ${person.cookie}\r\n\r\n`);
  }
  await service.until(async () => disconnected() === before + 5);
  const leaving = new AbortController();
  await service.until(async () => (await person.follow(undefined, leaving.signal)).status === 200);
  leaving.abort();
  await service.until(async () => (await openStreams()) === 0);
  expect(disconnected()).toBe(before + 5);
});

import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { queryObjects } from "node:v8";
import { Pool } from "undici";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { newId } from "../../shared/ids.ts";
import { pauseAfter } from "../../shared/concurrency/retry.ts";
import type { DueEvent } from "../../shared/webhooks/webhook-events.ts";
import { openEventSender } from "../../worker/deliver-events.ts";
import { becomes } from "../harness/assertions/eventually.ts";
import { listenOn } from "../harness/stubs/listen.ts";
import { type NameServer, startNameServer } from "../harness/stubs/name-server.ts";
import { answering, verified, WebhookReceiver } from "../harness/stubs/webhook-receiver.ts";

/** One attempt to send an event. The payer has chosen the address, so the receiver may be anything. */

const receiver = await WebhookReceiver.start();
afterAll(() => receiver.close());
afterEach(() => {
  receiver.received.length = 0;
  receiver.faults.length = 0;
});

const [secret, oldSecret] = ["A", "B"].map((letter) => `whsec_${Buffer.from(letter.repeat(32)).toString("base64")}`);

function eventTo(url: string, secrets: string[] = [secret ?? ""]): DueEvent {
  const [eventId, organizationId] = [newId("evt"), newId("org")];
  return {
    eventId,
    organizationId,
    url,
    secrets,
    body: '{"type":"webhook.test","text":"ä"}',
    attempts: 1,
    earlierAttempts: 0,
  };
}

async function sent(event: DueEvent, ...opening: Parameters<typeof openEventSender>) {
  const sender = openEventSender(...opening);
  try {
    return await sender.send(event);
  } finally {
    await sender.close();
  }
}

test("the receiver gets the event with the headers of Standard Webhooks, signed with each secret", async () => {
  const event = eventTo(receiver.url, [secret ?? "", oldSecret ?? ""]);
  expect(await sent(event, "any")).toEqual({ outcome: "delivered", status: 204 });
  const [request] = receiver.received;
  expect(request).toMatchObject({ method: "POST", body: event.body, id: event.eventId });
  expect(request?.headers["content-type"]).toBe("application/json");
  const at = String(request?.headers["webhook-timestamp"]);
  expect(Math.abs(Date.now() / 1_000 - Number(at))).toBeLessThan(60);
  // By the library of the standard's authors. It takes any one of several signatures.
  for (const each of [secret, oldSecret])
    expect(request && verified(request, each ?? "")).toEqual(JSON.parse(event.body));
  expect(() => request && verified({ ...request, body: `${request.body} ` }, secret ?? "")).toThrow("signature");
});

test.each([400, 404, 410, 429, 500, 503])("an answer %d is no delivery", async (status) => {
  receiver.faults.push(answering(status));
  expect(await sent(eventTo(receiver.url), "any")).toEqual({ outcome: "refused", status });
});

test("a redirect is not followed", async () => {
  const elsewhere = await WebhookReceiver.start();
  receiver.faults.push(answering(307, { location: elsewhere.url }));
  expect(await sent(eventTo(receiver.url), "any")).toEqual({ outcome: "refused", status: 307 });
  expect(elsewhere.received).toEqual([]);
  await elsewhere.close();
});

test("a receiver that never answers costs one time limit, and one that disconnects is unreachable", async () => {
  receiver.faults.push(() => undefined);
  expect(await sent(eventTo(receiver.url), "any", { timeoutMs: 300 })).toEqual({ outcome: "timeout" });
  receiver.faults.length = 0; // On a slow machine the time limit may pass before the request arrives.
  receiver.faults.push((response) => void response.destroy());
  expect(await sent(eventTo(receiver.url), "any")).toEqual({ outcome: "unreachable" });
});

test("an answer without end is not read", async () => {
  let socketClosed: Promise<unknown> = Promise.resolve();
  receiver.faults.push((response) => {
    response.writeHead(200);
    const write = () => {
      while (response.write("x".repeat(65_536)));
    };
    response.on("drain", write).on("error", () => undefined);
    socketClosed = once(response, "close");
    write();
  });
  const sender = openEventSender("any");
  expect(await sender.send(eventTo(receiver.url))).toEqual({ outcome: "delivered", status: 200 });
  await socketClosed;
  await sender.close();
});

test("an address that was tried leaves nothing in memory, however its answer ends", async () => {
  const sender = openEventSender("any", { timeoutMs: 300 });
  // Node warns once that this count is experimental.
  const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  onTestFinished(() => warnings.mockRestore());
  const connectionPools = () => queryObjects(Pool);
  const before = connectionPools();
  receiver.faults.push(
    () => undefined,
    (response) => void response.end("x".repeat(1024 * 1024)),
  );
  await sender.send(eventTo(receiver.url));
  await sender.send(eventTo(receiver.url));
  expect(await becomes(async () => connectionPools() <= before)).toBe(true);
  await sender.close();
});

test("the pauses between eleven attempts add up to about 21 hours", () => {
  const pauses = Array.from({ length: 10 }, (_, index) => pauseAfter(index + 1, 10));
  expect(pauses.slice(0, 4)).toEqual([10, 30, 90, 270]);
  expect(pauses.every((pause) => pause <= 6 * 3_600)).toBe(true);
  expect(Math.round(pauses.reduce((sum, pause) => sum + pause, 0) / 3_600)).toBe(21);
});

describe("to public addresses alone", () => {
  let names: NameServer;
  let resolver: Resolver;
  /** A port on which each connection is counted. TLS never comes about there. */
  const connections: Socket[] = [];
  const server = createServer((socket) => {
    connections.push(socket);
    socket.destroy();
  });
  let port: number;
  beforeAll(async () => {
    names = await startNameServer();
    resolver = new Resolver({ timeout: 1_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${names.port}`]);
    port = await listenOn(server);
  });
  afterAll(async () => {
    server.close();
    await names.close();
  });
  afterEach(() => {
    names.addresses.clear();
    connections.length = 0;
  });

  test.each([
    { title: "a loopback address", host: "127.0.0.1" },
    { title: "an IPv6 form of it", host: "[::ffff:127.0.0.1]" },
    { title: "a name of a private address", host: "hooks.example", addresses: ["127.0.0.1"] },
    { title: "a name of a public and a private address", host: "hooks.example", addresses: ["8.8.8.8", "127.0.0.1"] },
  ])("$title is not connected to", async ({ host, addresses = [] }) => {
    for (const address of addresses) names.addresses.add(address);
    const end = await sent(eventTo(`https://${host}:${port}/`), "public", { resolver });
    expect(end).toEqual({ outcome: "address_refused" });
    expect(connections).toEqual([]);
  });

  test("a webhook over http, from when the operator allowed it, is not connected to", async () => {
    expect(await sent(eventTo(receiver.url), "public", { isPublic: () => true })).toEqual({
      outcome: "address_refused",
    });
    expect(receiver.received).toEqual([]);
  });

  test("the connection goes to the address that was looked up and checked", async () => {
    names.addresses.add("127.0.0.1");
    const checked: string[] = [];
    const isPublic = (address: string) => checked.push(address) > 0;
    const end = await sent(eventTo(`https://hooks.example:${port}/`), "public", { resolver, isPublic });
    expect([end, checked]).toEqual([{ outcome: "unreachable" }, ["127.0.0.1"]]);
    expect(connections).toHaveLength(1);
  });

  test("a name without an address is unreachable", async () => {
    const end = await sent(eventTo(`https://hooks.example:${port}/`), "public", { resolver });
    expect(end).toEqual({ outcome: "unreachable" });
  });
});

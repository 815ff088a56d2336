import { mkdtemp, rm } from "node:fs/promises";
import { createSecureServer } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { openProviderHttp, type ProviderHttp } from "../../../../worker/providers/policies/http.ts";
import type { PageRequest, Provider } from "../../../../worker/providers/provider.ts";
import { openSandbox } from "../../../../worker/providers/sandbox/sandbox.ts";
import {
  breakOff,
  hang,
  disconnect,
  huge,
  raw,
  type Reply,
  reply,
  type SerperStub,
  stall,
  startSerperStub,
} from "../../../harness/stubs/serper-stub.ts";
import { eventually } from "../../../harness/assertions/eventually.ts";
import { createAuthority } from "../../../harness/servers/behind-tls.ts";
import { listenOn } from "../../../harness/stubs/listen.ts";
import { farMs } from "./fixtures.ts";

let stub: SerperStub;
let http: ProviderHttp;

beforeEach(async () => {
  stub = await startSerperStub();
  http = openProviderHttp();
});
afterEach(async () => {
  await http.close();
  await stub.close();
});

const overHttp: Provider = { ...openSandbox() };
delete overHttp.transport;

function send({ timeoutMs = farMs, provider = overHttp, stop = new AbortController(), request = {} } = {}) {
  const whole: PageRequest = { url: `${stub.url}/search`, headers: {}, body: "{}", ...request };
  return http.send(provider, whole, { timeoutMs, signal: stop.signal });
}

test("no call waits for a connection, however many run", async () => {
  const calls = 600;
  const release = stub.hold();
  const answers = Array.from({ length: calls }, () => send({ request: { body: '{"page":1}' } }));
  await eventually(async () => stub.requests.length === calls);
  release();
  expect((await Promise.all(answers)).filter((answer) => !("status" in answer))).toEqual([]);
});

test("an unused connection is closed before a firewall drops it, however long the provider would keep it", async () => {
  await http.close();
  http = openProviderHttp({ idleMsMax: 50 });
  const closedBy = Promise.withResolvers<string>();
  stub.otherwise = (request, response) => {
    response.socket?.once("end", () => closedBy.resolve("worker")).once("close", () => closedBy.resolve("provider"));
    raw(200, "{}", { "keep-alive": "timeout=600" })(request, response);
  };
  expect(await send()).toMatchObject({ status: 200 });
  expect(await closedBy.promise).toBe("worker");
});

test("a host that no name server resolves takes one look-up, however many calls wait for it", async () => {
  await http.close();
  const lookedUp: string[] = [];
  http = openProviderHttp({
    lookup: (host, _options, found) => {
      lookedUp.push(host);
      if (host === "provider.test") found(null, [{ address: "127.0.0.1", family: 4 }]);
    },
  });
  const stop = new AbortController();
  const to = (host: string) => send({ stop, request: { url: stub.url.replace("127.0.0.1", host) } });
  const hanging = Array.from({ length: 50 }, () => to("hanging.test"));
  await eventually(async () => lookedUp.length > 0);
  expect(await to("provider.test")).toMatchObject({ status: 200 });
  expect(lookedUp).toEqual(["hanging.test", "provider.test"]);
  stop.abort();
  await Promise.all(hanging);
});

const large = `"${"x".repeat(300_000)}"`;
const slowly: Reply = (_, response) => void response.writeHead(200).write(large.slice(0, 200_000));

test("large bodies that one provider sends slowly keep no body of another waiting", async () => {
  stub.otherwise = slowly;
  const stop = new AbortController();
  const slow = Array.from({ length: 20 }, () => send({ stop }));
  await eventually(async () => stub.requests.length === slow.length);
  stub.otherwise = raw(200, large);
  expect(await send({ provider: { ...overHttp, name: "serper" } })).toMatchObject({ body: large });
  stop.abort();
  await Promise.all(slow);
});

test("of two providers each reads half as many large bodies at once", async () => {
  await http.close();
  http = openProviderHttp({ providers: 2 });
  stub.otherwise = slowly;
  const stop = new AbortController();
  const slow = Array.from({ length: 4 }, () => send({ stop }));
  await eventually(async () => stub.requests.length === slow.length);
  stub.otherwise = raw(200, large);
  await eventually(async () => "failure" in (await send({ timeoutMs: 200 })));
  stop.abort();
  await Promise.all(slow);
  expect(await send()).toMatchObject({ body: large });
});

test.each([200, 403, 429, 500])("an answer with status %d is returned, with headers and body", async (status) => {
  stub.otherwise = reply(status, { message: "text" });
  expect(await send()).toMatchObject({
    status,
    headers: { "content-type": "application/json" },
    body: '{"message":"text"}',
  });
});

test.each<[string, Reply, string]>([
  ["a connection that closes without an answer", disconnect, "unavailable"],
  ["a connection that closes within the answer", breakOff, "unavailable"],
  ["an answer of eleven megabytes", huge, "unreadable"],
  ["a redirect, which would send the API key to another host,", raw(302, "", { location: "/elsewhere" }), "unreadable"],
])("%s is a failure", async (_, sent, failure) => {
  stub.otherwise = sent;
  expect(await send()).toEqual({ failure });
  expect(stub.requests.map(({ path }) => path)).toEqual(["/search"]);
});

test("a provider that does not listen is unavailable", async () => {
  await stub.close();
  expect(await send()).toEqual({ failure: "unavailable" });
});

test("a request that cannot be sent is the request's fault", async () => {
  expect(await send({ request: { headers: { "X-Key": "two\nlines" } } })).toEqual({ failure: "request_refused" });
  expect(stub.requests).toEqual([]);
});

const ignoringSignal: Provider = { ...openSandbox(), transport: () => new Promise(() => undefined) };

test.each<[string, Reply, Provider]>([
  ["never answers", hang, overHttp],
  ["never ends its answer", stall, overHttp],
  ["ignores the signal to stop", hang, ignoringSignal],
])("a provider that %s times out", async (_, silent, provider) => {
  stub.otherwise = silent;
  expect(await send({ timeoutMs: 50, provider })).toEqual({ failure: "timeout" });
});

test("a cancelled request ends at once", async () => {
  const stop = new AbortController();
  stub.otherwise = () => stop.abort();
  expect(await send({ stop })).toEqual({ failure: "timeout" });
  expect(await send({ stop })).toEqual({ failure: "timeout" });
});

/** A provider behind TLS that prefers HTTP/2, as most do. It answers no call on its first connection, as after a firewall lost it. */
async function startSilentOverTls() {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-authority-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const { certificate, context } = await createAuthority(folder);
  const trusted = getCACertificates("default");
  setDefaultCACertificates([certificate]);
  onTestFinished(() => setDefaultCACertificates(trusted));

  const ports: (number | undefined)[] = [];
  const SNICallback = (_: string, use: (error: null, found: typeof context) => void) => use(null, context);
  const server = createSecureServer({ allowHTTP1: true, SNICallback }, (request, response) => {
    ports.push(request.socket.remotePort);
    if (request.socket.remotePort !== ports[0]) response.end("{}");
  });
  onTestFinished(() => void server.close());
  return { url: `https://localhost:${await listenOn(server)}/`, calls: () => ports.length };
}

test("a connection that falls silent fails no later call, also at a provider that speaks HTTP/2", async () => {
  const { url, calls } = await startSilentOverTls();
  const stop = new AbortController();
  const first = send({ stop, request: { url } });
  await eventually(async () => calls() === 1);
  expect(await send({ request: { url } })).toMatchObject({ status: 200 });
  stop.abort();
  expect(await first).toEqual({ failure: "timeout" });
  expect(await send({ request: { url } })).toMatchObject({ status: 200 });
});

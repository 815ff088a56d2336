import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { unavailable } from "../../api/errors.ts";
import { CallerError } from "../../shared/errors.ts";
import { currentMessage } from "../harness/clients/agent.ts";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { type AnsweringApi, type Given, startAnsweringApi } from "../harness/stubs/answering-api.ts";

/** Requests that take nothing of the plan's rate window have a window of their own. */

const plan = { windowLimit: 2, windowSeconds: 60 };
const limit = 20;

const apis: AnsweringApi[] = [];
afterEach(() => {
  for (const api of apis.splice(0)) api.stop();
});

async function start(given: Partial<Given>) {
  const api = await startAnsweringApi({ body: '{"requestId":"req_1"}', plan, ...given });
  apis.push(api);
  return {
    url: api.url,
    usage: (organization = "one") => fetch(`${api.url}/v1/usage`, { headers: { authorization: organization } }),
    search: (body: unknown = { keyword: "a" }, key: Record<string, string> = {}) =>
      fetch(`${api.url}/v1/serp/search`, {
        method: "POST",
        headers: { authorization: "one", "content-type": "application/json", ...key },
        body: JSON.stringify(body),
      }),
    mcp: (message: { headers: Record<string, string>; body: string }) =>
      fetch(`${api.url}/mcp`, {
        method: "POST",
        headers: { ...message.headers, authorization: "one" },
        body: message.body,
      }),
  };
}
type Api = Awaited<ReturnType<typeof start>>;

const invalid = { keyword: "" };
const tool = (name: string, given: object) => currentMessage("tools/call", { name, arguments: given });

const beyondWindow = { reason: "window", retryAfterMs: 1, limit: 2, windowSeconds: 60 };
type Kind = [title: string, send: (api: Api) => Promise<Response>, given?: Partial<Given>];
const failing = (...error: ConstructorParameters<typeof CallerError>) => ({ error: new CallerError(...error) });

const counted: Kind[] = [
  ["that are invalid", (api) => api.search(invalid)],
  ["for an engine that does not exist", (api) => api.search({ keyword: "a", engine: "bing" })],
  ["without credit", (api) => api.search(), failing("out_of_credits")],
  ["beyond the rate window", (api) => api.search(), failing("rate_limited", beyondWindow)],
  [
    "of an organization beyond its share of a long queue",
    (api) => api.search(),
    { error: unavailable("queue_too_long") },
  ],
  ["that are replayed", (api) => api.search({ keyword: "a" }, { "idempotency-key": "1" }), { replayed: true }],
  ["for invalid tool calls", (api) => api.mcp(tool("serp.search", invalid))],
  ["without the scope of the operation", (api) => api.search(), { scopes: ["usage"] }],
  ["without the scope of the tool", (api) => api.mcp(tool("serp.search", { keyword: "a" })), { scopes: ["usage"] }],
  ["for an unknown tool", (api) => api.mcp(tool("none", {}))],
  ["over MCP that call no tool", (api) => api.mcp(currentMessage("tools/list"))],
];

test.each(counted)(
  "requests %s are refused without further work beyond ten times the plan's window, all operations with them",
  async (_, send, given = {}) => {
    const api = await start(given);
    for (let sent = 0; sent < limit; sent += 1) await (await send(api)).text();
    for (const refused of [
      await send(api),
      await api.usage(),
      await api.search(),
      await api.mcp(currentMessage("tools/list")),
    ]) {
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(refused.headers.get("ratelimit")).toMatch(/^"default";r=0;t=\d+$/);
      const details = { reason: "refused", limit, windowSeconds: 60, retryAfterMs: expect.any(Number) };
      const error = { code: "rate_limited", details };
      expect(await refused.json()).toMatchObject({ error: refused.url.endsWith("/mcp") ? { data: error } : error });
    }
    expect((await api.usage("another organization")).status).toBe(200);
  },
);

test("a request whose body comes late counts once, like any other", async () => {
  const api = await start({});
  const body = JSON.stringify(invalid);
  const head = `POST /v1/serp/search HTTP/1.1\r\nHost: a\r\nAuthorization: one\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  // So late that the API finds the caller once more.
  const afterwards = () => sleep(600).then(() => body);
  const late = await Promise.all(Array.from({ length: limit - 1 }, () => sendRaw(api.url, head, { afterwards })));
  expect(late.flatMap(({ answers }) => answers.map(({ status }) => status))).toEqual(Array(limit - 1).fill(400));
  expect((await api.search(invalid)).status).toBe(400);
  expect((await api.search(invalid)).status).toBe(429);
});

// A message of an earlier revision, whose answer is a stream.
const withProgress = {
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "serp.search", arguments: { keyword: "a" }, _meta: { progressToken: 1 } },
  }),
};

test.each([
  { title: "REST", type: "application/json", send: (api: Api) => api.search() },
  { title: "MCP", type: "application/json", send: (api: Api) => api.mcp(tool("serp.search", { keyword: "a" })) },
  { title: "MCP with progress", type: "text/event-stream", send: (api: Api) => api.mcp(withProgress) },
])("replays of a large answer over $title are refused sooner", async ({ type, send }) => {
  const body = JSON.stringify({ requestId: "req_1", text: "a".repeat(300_000) });
  const api = await start({ replayed: true, body });
  let sent = 1;
  for (let answer = await send(api); answer.status === 200; answer = await send(api)) {
    expect(answer.headers.get("content-type")).toContain(type);
    expect((await answer.text()).length).toBeGreaterThan(300_000);
    sent += 1;
  }
  expect(sent).toBeLessThan(limit / 2);
});

const uncounted: Kind[] = [
  ["that are answered", (api) => api.search()],
  ["for usage", (api) => api.usage()],
  ["for tool calls that are answered", (api) => api.mcp(tool("serp.search", { keyword: "a" }))],
  ["that fail with unavailable", (api) => api.search(), { error: unavailable("redis_unreachable") }],
  ["that fail with engine_error", (api) => api.search(), failing("engine_error", { reason: "provider_unavailable" })],
  ["that fail with engine_timeout", (api) => api.search(), failing("engine_timeout", { timeoutMs: 1 })],
  ["that fail with internal_error", (api) => api.search(), failing("internal_error")],
];

test.each(uncounted)("requests %s are not counted", async (_, send, given = {}) => {
  const api = await start(given);
  for (let sent = 0; sent < limit + 5; sent += 1) await (await send(api)).text();
  expect((await api.usage()).status).toBe(200);
});

test("the window ends when it says, and the organization is served again", async () => {
  const api = await start({ plan: { windowLimit: 1, windowSeconds: 1 } });
  await expect.poll(async () => (await api.search(invalid)).status).toBe(429);
  await expect.poll(async () => (await api.usage()).status).toBe(200);
});

test.each([
  { windowLimit: 10, beyond: 100 },
  { windowLimit: 2_000, beyond: 600 },
  { windowLimit: 144_000, beyond: 1_000 },
])(
  "a plan of $windowLimit requests a day refuses an organization for a minute, beyond $beyond requests",
  async ({ windowLimit, beyond }) => {
    // Each replay counts as fifty requests.
    const body = JSON.stringify({ requestId: "req_1", text: "a".repeat(49 * 64 * 1024) });
    const api = await start({ replayed: true, body, plan: { windowLimit, windowSeconds: 86_400 } });
    for (let sent = 0; sent < beyond; sent += 50) {
      const replay = await api.search();
      expect(replay.status).toBe(200);
      await replay.text();
    }
    const refused = await api.usage();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
    const details = { reason: "refused", limit: beyond, windowSeconds: 60 };
    expect(await refused.json()).toMatchObject({ error: { code: "rate_limited", details } });
  },
);

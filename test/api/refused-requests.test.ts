import { afterEach, describe, expect, test } from "vitest";
import { unavailable } from "../../api/errors.ts";
import { CallerError } from "../../shared/errors.ts";
import { currentMessage } from "../harness/clients/agent.ts";
import { AnsweringApi, type Given } from "../harness/stubs/answering-api.ts";

/** Requests that take nothing of the plan's rate window have a window of their own. */

const plan = { windowLimit: 2, windowSeconds: 60 };
const limit = 20;

const apis: AnsweringApi[] = [];
afterEach(() => {
  for (const api of apis.splice(0)) api.stop();
});

async function start(given: Partial<Given>) {
  const api = await AnsweringApi.start({ body: '{"requestId":"req_1"}', plan, ...given });
  apis.push(api);
  return {
    usage: (organization = "one") => fetch(`${api.url}/v1/usage`, { headers: { authorization: organization } }),
    search: (body: unknown = { keyword: "a" }, key: Record<string, string> = {}) =>
      fetch(`${api.url}/v1/serp/search`, {
        method: "POST",
        headers: { authorization: "one", "content-type": "application/json", ...key },
        body: JSON.stringify(body),
      }),
    mcp: (message: ReturnType<typeof currentMessage>) =>
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

const counted: { title: string; given?: Partial<Given>; send: (api: Api) => Promise<Response> }[] = [
  { title: "that are invalid", send: (api) => api.search(invalid) },
  { title: "for an engine that does not exist", send: (api) => api.search({ keyword: "a", engine: "bing" }) },
  {
    title: "without credit",
    given: { error: new CallerError("out_of_credits") },
    send: (api) => api.search(),
  },
  {
    title: "beyond the rate window",
    given: {
      error: new CallerError("rate_limited", { reason: "window", retryAfterMs: 1, limit: 2, windowSeconds: 60 }),
    },
    send: (api) => api.search(),
  },
  {
    title: "that are replayed",
    given: { replayed: true },
    send: (api) => api.search({ keyword: "a" }, { "idempotency-key": "1" }),
  },
  { title: "for invalid tool calls", send: (api) => api.mcp(tool("serp.search", invalid)) },
  { title: "without the scope of the operation", given: { scopes: ["usage"] }, send: (api) => api.search() },
  {
    title: "without the scope of the tool",
    given: { scopes: ["usage"] },
    send: (api) => api.mcp(tool("serp.search", { keyword: "a" })),
  },
  { title: "for an unknown tool", send: (api) => api.mcp(tool("none", {})) },
  { title: "over MCP that call no tool", send: (api) => api.mcp(currentMessage("tools/list")) },
];

describe.each(counted)("requests $title", ({ given = {}, send }) => {
  test("are refused without further work beyond ten times the plan's window, all operations with them", async () => {
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
      expect(await refused.json()).toMatchObject({ error: { code: "rate_limited", details } });
    }
    expect((await api.usage("another organization")).status).toBe(200);
  });
});

const uncounted: typeof counted = [
  { title: "that are answered", send: (api) => api.search() },
  { title: "for usage", send: (api) => api.usage() },
  { title: "for tool calls that are answered", send: (api) => api.mcp(tool("serp.search", { keyword: "a" })) },
  ...[
    unavailable("redis_unreachable"),
    new CallerError("engine_error", { reason: "provider_unavailable" }),
    new CallerError("engine_timeout", { timeoutMs: 1 }),
    new CallerError("internal_error"),
  ].map((error) => ({
    title: `that fail with ${error.code}`,
    given: { error },
    send: (api: Api) => api.search(),
  })),
];

test.each(uncounted)("requests $title are not counted", async ({ given = {}, send }) => {
  const api = await start(given);
  for (let sent = 0; sent < limit + 5; sent += 1) await (await send(api)).text();
  expect((await api.usage()).status).toBe(200);
});

test("the window ends when it says, and the organization is served again", async () => {
  const api = await start({ plan: { windowLimit: 1, windowSeconds: 1 } });
  await expect.poll(async () => (await api.search(invalid)).status).toBe(429);
  await expect.poll(async () => (await api.usage()).status).toBe(200);
});

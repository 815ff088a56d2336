import { afterAll, expect, test } from "vitest";
import { currentMessage } from "../../harness/clients/agent.ts";
import { requestText, sendRaw } from "../../harness/clients/raw-http.ts";
import { challenges, endlessWindow, expectCommonHeaders, expectNoTrace } from "../../harness/fixtures/refusals.ts";
import { messageOf } from "../../../shared/errors.ts";
import { type Answer, Service } from "../../harness/processes/service.ts";

/** The protocol's rules for HTTP, with requests that the test builds itself. */

const environment = { PUBLIC_URL: "https://serp.example", MCP_ALLOWED_HOSTS: "inside.example, other.example" };
const service = await Service.start({ environment, end: afterAll });
const organization = await service.organization({ terms: endlessWindow });

const ping = { jsonrpc: "2.0", id: 7, method: "ping" };
const call = {
  jsonrpc: "2.0",
  id: 7,
  method: "tools/call",
  params: { name: "serp.search", arguments: { keyword: "a" } },
};
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** A message as the organization's agent would send it; `headers` instead of the usual ones, "" for none. */
function post(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const all = { authorization: `Bearer ${organization.token}`, ...json, ...headers };
  const given = Object.entries(all).filter(([, value]) => value !== "");
  const bytes = typeof body === "string" ? body : JSON.stringify(body);
  return service.send("/mcp", { method: "POST", headers: Object.fromEntries(given), body: bytes });
}

test.each([
  { what: "no token", authorization: "", challenge: challenges.missing },
  { what: "an unknown token", authorization: "Bearer unknown", challenge: challenges.invalid },
])(
  "401 for $what, whatever the body is, as a JSON-RPC error without an id, and without a hint of another way to sign in",
  async ({ authorization, challenge }) => {
    for (const body of [call, "{"]) {
      const answer = await expectNoTrace(service, organization, () => post(body, { authorization }));
      const data = { requestId: answer.requestId, code: "unauthenticated", details: {} };
      expect({ status: answer.status, body: answer.body }).toEqual({
        status: 401,
        body: { jsonrpc: "2.0", id: null, error: { code: -32_000, message: messageOf("unauthenticated", {}), data } },
      });
      expect(answer.headers.get("www-authenticate")).toBe(challenge);
      expectCommonHeaders(answer);
    }
    for (const path of ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]) {
      expect((await service.send(path)).status).toBe(404);
    }
  },
);

test("a client that looks for OAuth after a 401 learns about its token, in the form of OAuth", async () => {
  const body = JSON.stringify({ client_name: "agent", redirect_uris: ["http://127.0.0.1/callback"] });
  const answer = await service.send("/register", { method: "POST", headers: json, body });
  expect({ status: answer.status, body: answer.body }).toEqual({
    status: 404,
    body: { error: "access_denied", error_description: expect.stringContaining("unknown, expired or revoked") },
  });
  expectCommonHeaders(answer);
});

test.each(["GET", "DELETE", "PUT"])(
  "405 for %s, since there is no stream to open and no session to end",
  async (method) => {
    const answer = await service.send("/mcp", { method, headers: { authorization: `Bearer ${organization.token}` } });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST, OPTIONS");
  },
);

type Bad = [
  status: number,
  what: string,
  body: unknown,
  code: number,
  reason: string,
  headers?: Record<string, string>,
];

const tooLarge = { ...call, params: { name: "serp.search", arguments: { keyword: "a".repeat(17_000) } } };
const badMessages: Bad[] = [
  [400, "no JSON", "{", -32_700, "body_not_json"],
  [400, "no body", "", -32_700, "body_missing"],
  [400, "a batch", [call, call], -32_600, "batch_not_supported"],
  [400, "an empty batch", [], -32_600, "batch_not_supported"],
  [400, "more than 200 parts", { ...ping, params: { list: Array(200).fill(0) } }, -32_600, "too_many_parts"],
  [413, "more than 16 KiB", tooLarge, -32_000, "body_too_large"],
  [415, "another type", call, -32_000, "content_type_not_json", { "content-type": "text/plain" }],
  [406, "no JSON wanted", call, -32_000, "json_not_accepted", { accept: "text/html" }],
];

test.each(badMessages)(
  "%s for %s, as a JSON-RPC error without an id",
  async (status, _, body, code, reason, headers) => {
    const answer = await expectNoTrace(service, organization, () => post(body, headers));
    expect(answer.status).toBe(status);
    const data = { requestId: answer.requestId, reason };
    expect(answer.body).toEqual({ jsonrpc: "2.0", id: null, error: { code, message: expect.any(String), data } });
    expectCommonHeaders(answer);
  },
);

test.each<[status: number, what: string, body: unknown, code: number, headers?: Record<string, string>]>([
  [400, "no message", { keyword: "a" }, -32_600],
  [400, "null", "null", -32_600],
  [400, "a method that is no text", { ...ping, method: { toString: null, valueOf: null } }, -32_600],
  [400, "an id that is none", { ...ping, id: {} }, -32_600],
  [400, "a revision that there never was", ping, -32_000, { "mcp-protocol-version": "1999-01-01" }],
  [406, "from a client that lists no events", ping, -32_000, { accept: "*/*" }],
])("%s without data for JSON that is %s", async (status, _, body, code, headers) => {
  const answer = await expectNoTrace(service, organization, () => post(body, headers));
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status, body: { error: { code } } });
  expect(answer.body.error).not.toHaveProperty("data");
});

test("an unknown method and a subscription to changes are not found", async () => {
  const unknown = await post({ ...ping, method: "resources/list" });
  expect(unknown.text).toContain('"code":-32601');
  const listening = await post({ ...ping, method: "subscriptions/listen" });
  expect(listening).toMatchObject({ status: 404, body: { jsonrpc: "2.0", id: 7, error: { code: -32_601 } } });
});

test.each([
  { what: "JSON for a call", meta: {}, type: "application/json; charset=utf-8" },
  { what: "a stream of events with a progressToken", meta: { progressToken: "p" }, type: "text/event-stream" },
])("in an older revision, $what", async ({ meta, type }) => {
  const params = { name: "serp.search", arguments: { keyword: "sandbox:slow=1200" }, _meta: meta };
  const answer = await post({ ...call, params }, { "mcp-protocol-version": "2025-11-25" });
  expect({ status: answer.status, type: answer.headers.get("content-type") }).toEqual({ status: 200, type });
  expect(answer.text).toContain('"creditsCharged":5');
  expect(answer.text.includes("notifications/progress")).toBe(type === "text/event-stream");
});

test("a notification gets 202 without a body", async () => {
  const answer = await post({ jsonrpc: "2.0", method: "notifications/initialized" });
  expect({ status: answer.status, text: answer.text }).toEqual({ status: 202, text: "" });
});

test("a CORS preflight of another origin gets no permission", async () => {
  const headers = {
    origin: "https://other.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };
  const answer = await service.send("/mcp", { method: "OPTIONS", headers });
  expect(answer.status).toBe(204);
  expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
});

const hosts = [
  { host: "evil.example", origin: "http://evil.example", status: 403, reason: "host_not_allowed" },
  { host: "evil.example", status: 403, reason: "host_not_allowed" },
  { host: "localhost.evil.example", status: 403, reason: "host_not_allowed" },
  { host: "127.0.0.1:3000", origin: "http://evil.example", status: 403, reason: "origin_not_allowed" },
  { host: "127.0.0.1:3000", origin: "null", status: 403, reason: "origin_not_allowed" },
  { host: "127.0.0.1:3000", origin: "http://127.0.0.1.evil.example", status: 403, reason: "origin_not_allowed" },
  { host: "localhost:3000", origin: "http://localhost:6274", status: 200 },
  { host: "[::1]:3000", status: 200 },
  { host: "192.0.2.7", origin: "http://192.0.2.7", status: 200 },
  { host: "serp.example", origin: "https://serp.example", status: 200 },
  { host: "inside.example:3000", status: 200 },
  { host: "other.example", status: 200 },
  // A proxy in front of the API may send another Host than the host of the page's Origin.
  { host: "inside.example", origin: "https://serp.example", status: 200 },
];

test.each(hosts)("$status for the Host $host and the Origin $origin", async ({ host, origin, status, reason }) => {
  const { headers, body } = currentMessage("server/discover");
  const authorization = `Bearer ${organization.token}`;
  const all = { ...headers, host, ...(origin !== undefined && { origin }), authorization, connection: "close" };
  const { answers } = await sendRaw(service.apis[0]?.url ?? "", requestText("POST /mcp", all, body));
  expect(answers[0]?.status).toBe(status);
  expect(answers[0]?.body.error?.data.reason).toBe(reason);
});

/** Has a process fail to read the file of the endpoint once, as with too many open files. */
const unreadable = `import { registerHooks } from "node:module";
let failures = 0;
registerHooks({ load: (url, context, next) => {
  if (url.endsWith("/mcp/endpoint.ts") && failures++ === 0) throw new Error("EMFILE");
  return next(url, context);
} });`;

test("an endpoint that could not be loaded is loaded by the next request", async () => {
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(unreadable)}`;
  const { url } = await service.startApi({ NODE_OPTIONS });
  const headers = { authorization: `Bearer ${organization.token}`, ...json };
  const ask = () => fetch(`${url}/mcp`, { method: "POST", headers, body: JSON.stringify(ping) });
  expect([(await ask()).status, (await ask()).status]).toEqual([500, 200]);
});

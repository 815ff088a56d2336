import { afterEach, describe, expect, test } from "vitest";
import { unsentBytesMax } from "../../api/search/unsent-answers.ts";
import { currentMessage } from "../harness/clients/agent.ts";
import { Connection } from "../harness/clients/connection.ts";
import { type AnsweringApi, type Given, startAnsweringApi } from "../harness/stubs/answering-api.ts";
import { requestText } from "../harness/clients/raw-http.ts";

/** Callers that leave the answers of their searches unread. */

const closings: (() => void)[] = [];
afterEach(() => {
  for (const close of closings.splice(0)) close();
});

// Two of them are more than an organization may leave unread, and each is more than the buffers of both ends take.
const body = JSON.stringify({ requestId: "req_1", text: "a".repeat(unsentBytesMax / 2) });
const message = JSON.stringify({ keyword: "a" });
const { headers, body: call } = currentMessage("tools/call", { name: "serp.search", arguments: { keyword: "a" } });

const refusal = { reason: "unread", retryAfterMs: 1_000, limit: unsentBytesMax };
const answered = "a".repeat(1_000);

async function readRefusal(caller: Connection): Promise<void> {
  if (!(await caller.readText(JSON.stringify(refusal)))) throw new Error("the search was not refused");
}

const forms = [
  { title: "REST", path: "/v1/serp/search", sent: { "content-type": "application/json" }, message, clients: 2 },
  // An answer over MCP has two copies.
  { title: "MCP", path: "/mcp", sent: headers, message: call, clients: 1 },
];

async function start(given: Partial<Given> = {}) {
  const api = await startAnsweringApi({ body, deliveryMs: 600_000, ...given });
  closings.push(() => api.stop());
  return api;
}

describe.each(forms)("answers over $title that are not read", ({ path, sent, message: asked, clients }) => {
  async function ask(api: AnsweringApi): Promise<Connection> {
    const caller = await Connection.open(api.url);
    caller.send(requestText(`POST ${path}`, { authorization: "one", ...sent }, asked));
    closings.push(() => caller.reset());
    return caller;
  }

  async function search(api: AnsweringApi, organization: string) {
    const init = { method: "POST", headers: { ...sent, authorization: organization }, body: asked };
    return (await fetch(api.url + path, init)).text();
  }

  async function leaveUnread(api: AnsweringApi) {
    const unread = await Promise.all(Array.from({ length: clients }, () => ask(api)));
    await expect.poll(() => api.unsentBytes()).toBeGreaterThanOrEqual(unsentBytesMax);
    return unread;
  }

  test("stop further searches of their organization, and of no other", async () => {
    const api = await start();
    await leaveUnread(api);
    expect(await search(api, "one")).toContain(JSON.stringify(refusal));
    expect(await search(api, "another")).toContain(answered);
  });

  test("stop messages over MCP that call no tool", async () => {
    const api = await start();
    await leaveUnread(api);
    const { headers: listing, body: list } = currentMessage("tools/list");
    const init = { method: "POST", headers: { ...listing, authorization: "one" }, body: list };
    const answer = await fetch(`${api.url}/mcp`, init);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await answer.json()).toMatchObject({
      jsonrpc: "2.0",
      error: { code: -32_000, data: { code: "rate_limited", details: refusal } },
    });
  });

  test("stop replays that were under way with them", async () => {
    const api = await start({ replayed: true, searchMs: 500 });
    const others = Array.from({ length: 4 }, () => ask(api));
    const refused = Promise.any(others.map(async (caller) => readRefusal(await caller)));
    await expect(refused).resolves.toBeUndefined();
  });

  test("count no more once they are read or their connection has ended", async () => {
    const api = await start();
    const unread = await leaveUnread(api);
    unread.pop()?.reset();
    for (const caller of unread) caller.read();
    await expect.poll(() => api.unsentBytes()).toBe(0);
    expect(await search(api, "one")).toContain(answered);
  });
});

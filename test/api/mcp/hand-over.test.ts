import { afterAll, describe, expect, test } from "vitest";
import { currentMessage } from "../../harness/clients/agent.ts";
import { Connection } from "../../harness/clients/connection.ts";
import { type AnsweringApi, startAnsweringApi } from "../../harness/stubs/answering-api.ts";
import { requestText } from "../../harness/clients/raw-http.ts";

/** The result of a search has its answer twice. One copy is enough to use it, so one copy is paid. */

// More than the buffers of both ends take while the caller does not read: 4 MB on the server's side.
const copyBytes = 8 * 1024 * 1024;
const body = JSON.stringify({ requestId: "req_1", text: "a".repeat(copyBytes) });
// The buffers of both ends take far less than the rest of the first copy.
const readBytes = 100_000;
// Far more than a busy machine needs.
const deliveryMs = 170_000;
const session = "mcp_1";

/** Its searches take long enough for one progress notification. */
const prompt = await startAnsweringApi({ body, deliveryMs });
const slow = await startAnsweringApi({ body, deliveryMs, searchMs: 1_200 });
/** Of an answer that nothing delays, a caller that reads at once has a copy long before. */
const impatientMs = 6_000;
const impatient = await startAnsweringApi({ body, deliveryMs: impatientMs });
afterAll(() => {
  for (const api of [prompt, slow, impatient]) api.stop();
});

const older = { "mcp-protocol-version": "2025-11-25", "mcp-session-id": session };

function post(message: string, headers: Record<string, string>): string {
  // Closed after any other response than the one that a test expects: its client reads no further.
  const own = { connection: "close", "content-type": "application/json" };
  return requestText("POST /mcp", { accept: "application/json, text/event-stream", ...own, ...headers }, message);
}

function search(revision: "current" | "older", meta: object): string {
  const current = currentMessage("tools/call", { name: "serp.search", arguments: { keyword: "a" } });
  const message = JSON.parse(current.body);
  const own = revision === "current" ? message.params["_meta"] : {};
  const params = { ...message.params, _meta: { ...own, ...meta } };
  return post(JSON.stringify({ ...message, params }), revision === "current" ? current.headers : older);
}

const forms = [
  { title: "JSON", bytes: search("current", {}), apiOf: () => prompt },
  { title: "a stream with progress", bytes: search("current", { progressToken: 1 }), apiOf: () => slow },
  { title: "JSON of the older revision", bytes: search("older", {}), apiOf: () => prompt },
  {
    title: "a stream of the older revision with progress",
    bytes: search("older", { progressToken: 1 }),
    apiOf: () => slow,
  },
];

describe.each(forms)("an answer over MCP, as $title", ({ bytes, apiOf }) => {
  let api: AnsweringApi;
  async function ask(): Promise<Connection> {
    api = apiOf();
    api.decisions.length = 0;
    const client = await Connection.open(api.url);
    client.send(bytes);
    return client;
  }

  test("is paid once the caller has its first copy, although it resets the connection then", async () => {
    const client = await ask();
    await client.readText('"structuredContent":');
    const text = client.received.toString("latin1");
    expect(text.slice(0, 4_000)).toContain("200 OK");
    expect(text).toContain(JSON.stringify(body));
    client.reset();
    await expect.poll(() => api.decisions).toEqual(["confirmed"]);
  });

  test("is free if the connection ends within the first copy", async () => {
    const client = await ask();
    await client.readBytes(readBytes);
    client.reset();
    await expect.poll(() => api.decisions).toEqual(["reversed"]);
  });
});

test.each(forms.slice(2))(
  "a cancellation while the answer is being sent, as $title, changes nothing: the caller gets all of it and pays",
  async ({ bytes, apiOf }) => {
    const api = apiOf();
    api.decisions.length = 0;
    const client = await Connection.open(api.url);
    client.send(bytes);
    await client.readBytes(readBytes);
    const cancelling = await Connection.open(api.url);
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    cancelling.send(post(JSON.stringify(cancel), older));
    await cancelling.readText("202 Accepted");
    expect(await client.readBytes(2 * copyBytes + 1)).toBe(true);
    await expect.poll(() => api.decisions).toEqual(["confirmed"]);
    client.reset();
    cancelling.reset();
  },
);

test("a text that lacks results is no whole copy: the search is paid once the structured content is there too", async () => {
  const results = [{ rank: 1, title: "a".repeat(copyBytes) }];
  const truncating = await startAnsweringApi({ body: JSON.stringify({ requestId: "req_1", results }), deliveryMs });
  const leaving = await Connection.open(truncating.url);
  leaving.send(search("current", {}));
  await leaving.readText('"structuredContent":');
  leaving.reset();
  await expect.poll(() => truncating.decisions).toEqual(["reversed"]);
  const patient = await Connection.open(truncating.url);
  patient.send(search("current", {}));
  expect(await patient.readBytes(copyBytes)).toBe(true);
  await expect.poll(() => truncating.decisions).toEqual(["reversed", "confirmed"]);
  patient.reset();
  truncating.stop();
});

describe("a caller that takes too long", () => {
  async function ask(): Promise<Connection> {
    const client = await Connection.open(impatient.url);
    impatient.decisions.length = 0;
    client.send(search("current", {}));
    return client;
  }

  test("for the first copy never gets all of it, does not pay, and changes nothing by reading on", async () => {
    const client = await ask();
    // Before the limit of readers that take nothing ends the connection.
    await expect.poll(() => impatient.decisions, { timeout: 20_000 }).toEqual(["reversed"]);
    expect([await client.readBytes(copyBytes), client.isClosed]).toEqual([false, true]);
    expect(impatient.decisions).toEqual(["reversed"]);
  });

  test("for the rest of the answer gets it, and pays once", async () => {
    const client = await ask();
    await client.readText('"structuredContent":');
    await expect.poll(() => impatient.decisions).toEqual(["confirmed"]);
    // Once a later caller took too long, so has this one.
    await ask();
    await expect.poll(() => impatient.decisions, { timeout: 20_000 }).toEqual(["reversed"]);
    expect(await client.readBytes(2 * copyBytes + 1)).toBe(true);
    expect(impatient.decisions).toEqual(["reversed"]);
    client.reset();
  });
});

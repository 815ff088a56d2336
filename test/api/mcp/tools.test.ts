import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compactResponseBody, searchResponseBody } from "../../../shared/search-answer.ts";
import { Agent, revisionNames, type ToolAnswer } from "../../harness/clients/agent.ts";
import { endlessWindow, organizationState } from "../../harness/fixtures/refusals.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

const service = await usualService();

describe.each(revisionNames)("an agent that speaks %s", (revision) => {
  let organization: Organization;
  let agent: Agent;
  beforeAll(async () => {
    organization = await service.organization({ terms: endlessWindow });
    agent = await Agent.connect(service, organization.token, { revision });
  });
  afterAll(() => agent.close());

  test("negotiates that revision", () => {
    expect(agent.client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(agent.client.getServerVersion()).toMatchObject({ name: "serpmill" });
  });

  test("lists two tools under two names each, with their schemas, the short format and the price", async () => {
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["serp.search", "usage.get", "serp_search", "usage_get"]);
    const [search, usage, plainSearch, plainUsage] = tools;
    expect([plainSearch, plainUsage]).toEqual([
      { ...search, name: "serp_search" },
      { ...usage, name: "usage_get" },
    ]);
    expect(search?.description).toMatch(
      /Set `format` to `compact` unless .* costs 5 mils .* A search that fails costs nothing\./,
    );
    expect(search?.inputSchema).toMatchObject({ required: ["keyword"], additionalProperties: false });
    const fields = ["keyword", "engine", "location", "language", "device", "depth", "targetDomain", "types", "format"];
    fields.push("maxAgeSeconds", "include");
    expect(Object.keys(search?.inputSchema.properties ?? {})).toEqual(fields);
    // Models know no HTTP statuses.
    expect(JSON.stringify(tools.map(({ description, inputSchema }) => [description, inputSchema]))).not.toMatch(
      /\bHTTP\b|\b[45]0[0-9]\b/,
    );
    expect(search?.annotations).toMatchObject({ readOnlyHint: false, idempotentHint: false, openWorldHint: true });
    expect(usage?.inputSchema).toMatchObject({ properties: {}, additionalProperties: false });
    expect(usage?.annotations).toMatchObject({ readOnlyHint: true, openWorldHint: false });
    for (const tool of tools) expect(tool.outputSchema).toMatchObject({ type: "object" });
    // Full, compact or an error; the balance or an error.
    expect(search?.outputSchema).toMatchObject({ anyOf: [{}, {}, {}] });
    expect(usage?.outputSchema).toMatchObject({ anyOf: [{}, {}] });
  });

  test("is charged once for a search, and gets the same answer as REST", async () => {
    const before = await service.usage(organization.token);
    // The client validates the answer with the output schema from the tools list.
    const answer = await agent.call("serp.search", { keyword: "best coffee beans", depth: 20 });
    expect(answer).toMatchObject({ isError: false, body: { creditsCharged: 5, query: { depth: 20 } } });
    expect(answer.texts).toHaveLength(1);
    expectShort(answer);
    const byRest = await service.search(organization.token, { keyword: "best coffee beans", depth: 20 });
    const { requestId, creditsRemaining } = byRest.body;
    expect({ ...answer.body, requestId, creditsRemaining }).toEqual(byRest.body);

    const spent = before.body.creditBalanceMils - 10;
    expect((await agent.call("usage.get")).body).toEqual({ creditBalanceMils: spent, plan: before.body.plan });
    await service.rest();
    const entries = await service.ledgerOf(organization.organizationId);
    expect(entries.filter((entry) => entry.requestId === answer.body.requestId)).toMatchObject([
      { kind: "charge", mils: -5 },
    ]);
  });

  test("gets the types and the format that it orders, as from REST", async () => {
    const byFormat = await agent.call("serp_search", { keyword: "best coffee beans", format: "compact" });
    expect(compactResponseBody.parse(byFormat.body).results).toHaveLength(10);
    const byType = await agent.call("serp_search", { keyword: "best coffee beans", types: ["video"] });
    expect(searchResponseBody.parse(byType.body).results).toMatchObject([{ type: "video" }]);
    const refused = await agent.call("serp_search", { keyword: "a", format: "compact", types: ["video"] });
    expect(refused).toMatchObject({ isError: true, body: { error: { details: { issues: [{ path: "types" }] } } } });
  });

  test("is understood although its model fills in what it does not use, and its client changes types", async () => {
    const unused = { location: null, language: "", targetDomain: null, format: "", include: [], maxAgeSeconds: "null" };
    const sent = { keyword: 1984, engine: null, depth: "20", types: '["video"]', ...unused };
    const { body } = await agent.call("serp_search", sent);
    expect(body).toMatchObject({ creditsCharged: 5, query: { keyword: "1984", location: "United States", depth: 20 } });
    expect(Object.keys(body.query)).not.toContain("targetDomain");
    expect(body.query.types).toEqual(["video"]);
    expect(await agent.call("usage_get", { plan: null })).toMatchObject({ isError: false });
  });

  const unreadable = [
    { field: "keyword", values: [null, "", 1.5, ["a"]] },
    { field: "depth", values: ["ten", "20 results", "1.5", true] },
    { field: "types", values: ["video", "[", "[".repeat(7_000) + "]".repeat(7_000), { video: true }] },
    { field: "format", values: ["short", 1] },
  ];

  test.each(unreadable)("is not charged for a $field that has no one meaning", async ({ field, values }) => {
    for (const value of values) {
      const { body } = await agent.call("serp_search", { keyword: "a", [field]: value });
      expect(body.error).toMatchObject({
        code: "bad_request",
        details: { issues: [{ path: expect.stringContaining(field) }] },
      });
    }
  });

  test("counts in the rate window like REST, and only for tool calls", async () => {
    const { rateTokensTaken } = await organizationState(service, organization);
    await agent.client.listTools();
    const [priced, plain] = [await agent.call("serp.search", { keyword: "a" }), await agent.call("usage_get")];
    expect([priced.isError, plain.isError]).toEqual([false, false]);
    if (revision === "2025-11-25") await agent.client.ping();
    expect(Number((await organizationState(service, organization)).rateTokensTaken) - Number(rateTokensTaken)).toBe(2);
  });

  test("that repeats a search under its key pays once, and sees that it is a replay", async () => {
    const options = { meta: { "serpmill/idempotencyKey": `order-${revision}` } };
    const first = await agent.call("serp.search", { keyword: "once" }, options);
    const repeat = await agent.call("serp_search", { keyword: "once" }, options);
    expect(repeat).toMatchObject({ texts: first.texts, meta: { "serpmill/idempotencyReplayed": true } });
    expect(first.meta).not.toHaveProperty("serpmill/idempotencyReplayed");
    await service.rest();
    const entries = await service.ledgerOf(organization.organizationId);
    expect(entries.filter(({ requestId }) => requestId === first.body.requestId)).toHaveLength(1);

    const other = await agent.call("serp.search", { keyword: "another" }, options);
    expect(other.body.error).toMatchObject({ code: "bad_request", details: { reason: "idempotency_key_reused" } });
    const malformed = await agent.call("serp.search", { keyword: "a" }, { meta: { "serpmill/idempotencyKey": "a b" } });
    expect(malformed.body.error.details.issues).toMatchObject([{ path: "_meta.serpmill/idempotencyKey" }]);
  });

  test("gets a progress notification every second if it asked for progress", async () => {
    const received: number[] = [];
    const options = { onprogress: ({ progress }: { progress: number }) => void received.push(progress) };
    const answer = await agent.call("serp.search", { keyword: "sandbox:slow=2500" }, options);
    expect(answer.isError).toBe(false);
    expect(received).toEqual([1, 2]);
  });

  test("that calls an unknown tool gets a protocol error", async () => {
    await expect(agent.call("serp.find")).rejects.toMatchObject({ code: -32_602 });
    expect(agent.clientErrors).toEqual([]);
  });
});

/** Expects the text to tell a model the same as the structured content, without what it can do without. */
function expectShort({ texts: [text = ""], body }: ToolAnswer): void {
  const { results, ...short } = JSON.parse(text);
  const { results: whole, ...rest } = searchResponseBody.parse(body);
  expect(short).toEqual(rest);
  expect(text.length).toBeLessThan(0.8 * JSON.stringify(body).length);
  expect(text).not.toMatch(/"(domain|breadcrumb)":|:(""|\[\]|\{\})/);
  // In the order of the fields, which is the same.
  expect(leaves(results)).toEqual(leaves(whole.map((one) => ({ ...one, domain: "", breadcrumb: "" }))));
}

/** All texts and numbers in a value of JSON, without empty ones. */
function leaves(value: unknown): unknown[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(leaves);
  return value === "" ? [] : [value];
}

test("a client that asks for plain names sees only these, and can call every name", async () => {
  const { token } = await service.organization();
  const agent = await Agent.connect(service, token, { path: "/mcp?names=plain" });
  const { tools } = await agent.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["serp_search", "usage_get"]);
  expect((await agent.call("usage.get")).isError).toBe(false);
  await agent.close();
});

test("an agent without credit gets a complete address to top up at, although the service does not know its own", async () => {
  const { token } = await service.organization({ creditMils: 3 });
  const agent = await Agent.connect(service, token);
  const { body } = await agent.call("serp_search", { keyword: "a" });
  const topupUrl = `${service.apis[0]?.url}/billing`;
  expect(body.error).toMatchObject({ code: "out_of_credits", details: { topupUrl } });
  expect(body.error.nextStep).toContain(`top up at ${topupUrl}.`);
  await agent.close();
});

test("the tools list has the price of the caller's plan", async () => {
  const { token } = await service.organization({ terms: { priceMils: 12 } });
  const agent = await Agent.connect(service, token);
  const { tools } = await agent.client.listTools();
  expect(tools[0]?.description).toContain("costs 12 mils (1000 mils are 1 USD) at any depth, ");
  await agent.close();
});

test("under a price per page the tools list has that price and the maximum depth, and so has usage", async () => {
  const terms = { pricePerPageMils: 3, maxDepth: 30 };
  const { token } = await service.organization({ creditMils: 100, terms });
  const agent = await Agent.connect(service, token);
  const { tools } = await agent.client.listTools();
  expect(tools[0]?.description).toContain(
    "costs 3 mils (1000 mils are 1 USD) for every 10 results that `depth` asks for, rounded up",
  );
  expect(tools[0]?.description).toContain("searches with a `depth` of at most 30.");
  expect((await agent.call("serp.search", { keyword: "a", depth: 21 })).body).toMatchObject({ creditsCharged: 9 });
  const usage = { creditBalanceMils: 91, plan: expect.any(String), pricePerPageMils: 3, maxDepth: 30 };
  await service.until(async () => (await service.usage(token)).body.creditBalanceMils === 91);
  expect((await agent.call("usage.get")).body).toEqual(usage);
  expect((await service.usage(token)).body).toEqual(usage);
  await agent.close();
});

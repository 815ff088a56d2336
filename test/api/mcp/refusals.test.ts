import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent, type Revision, revisions, type Told } from "../../harness/clients/agent.ts";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import { type Answer, type Organization, Service } from "../../harness/processes/service.ts";

/** What REST refuses a tool refuses too: the same error, as a result that a model can read. */

const timeoutMs = 2_000;

let service: Service;
beforeAll(async () => {
  const environment = { SEARCH_DEADLINE_MS: String(timeoutMs), PUBLIC_URL: "https://serp.example" };
  service = await Service.start({ environment });
});
afterAll(() => service.stop());

// The type of the keys is that of the table.
const both = Object.keys(revisions) as Revision[];

/** Sends the same request over MCP and REST and expects the same error. @returns the hint of the tool's result. */
async function refusedAlike(
  { token }: Organization,
  { query = { keyword: "a" }, tool = "serp.search", revision = "2026-07-28" }: Asked,
): Promise<string> {
  const agent = await Agent.connect(service, token, { revision });
  const [byAgent, byRest] = await Promise.all([
    agent.call(tool, query),
    tool === "serp.search" ? service.search(token, query) : service.usage(token),
  ]);
  await agent.close();
  expect(byAgent.isError).toBe(true);
  expect(byAgent.body.requestId).toMatch(/^req_/);
  expect(errorOf(byAgent)).toEqual(errorOf(byRest));
  const [json = "", hint = ""] = byAgent.texts;
  expect(JSON.parse(json)).toEqual(byAgent.body);
  return hint;
}

interface Asked {
  query?: object & Record<string, unknown>;
  tool?: string;
  revision?: Revision;
}

/** Windows go on while both doors are asked. */
function errorOf({ body }: Told | Answer) {
  const { code, details } = body.error;
  const ticking = details.reason === "window" && { retryAfterMs: expect.any(Number) };
  return { ...body.error, code, details: { ...details, ...ticking } };
}

const wrong = [
  {
    status: 400,
    code: "bad_request",
    query: { keyword: "a", depth: 0, colour: "red" },
    hint: "Fix the fields listed in `error.details.issues`",
  },
  {
    status: 400,
    code: "bad_request",
    query: { keyword: "a", location: "Springfield" },
    hint: "Fix the fields listed in `error.details.issues`",
  },
  { status: 501, code: "not_implemented", query: { keyword: "a", engine: "bing" }, hint: "error.details.supported" },
  { status: 502, code: "engine_error", query: { keyword: "sandbox:error" }, hint: "Nothing was charged" },
  { status: 502, code: "engine_error", query: { keyword: "sandbox:refused" }, hint: "Nothing was charged" },
  { status: 502, code: "engine_error", query: { keyword: "sandbox:garbage" }, hint: "Nothing was charged" },
  { status: 504, code: "engine_timeout", query: { keyword: "sandbox:timeout" }, hint: "Nothing was charged" },
];

describe.each(both)("in %s", (revision) => {
  test.each(wrong)("$status $code for $query", async ({ code, query, hint }) => {
    const organization = await service.organization({ creditMils: 100, terms: endlessWindow });
    expect(await refusedAlike(organization, { query, revision })).toContain(hint);
    await service.rest();
    const entries = (await service.ledgerOf(organization.organizationId)).slice(1);
    expect(entries.filter(({ kind, reason }) => kind !== "refund" || reason !== code)).toEqual([]);
    expect((await service.usage(organization.token)).body.creditBalanceMils).toBe(100);
  });

  test("402 plan_required and out_of_credits, with where to top up", async () => {
    const reader = await service.organization({ terms: { operations: ["usage.get"] } });
    expect(await refusedAlike(reader, { revision })).toContain("Do not retry");
    const poor = await service.organization({ creditMils: 3 });
    expect(await refusedAlike(poor, { revision })).toContain("top up at https://serp.example/billing.");
  });

  test("429 rate_limited for a full window and for too many in flight, with how long to wait", async () => {
    const keen = await service.organization({ terms: { windowLimit: 1, windowSeconds: 1_000_000 } });
    await service.usage(keen.token);
    for (const tool of ["serp.search", "usage.get"]) {
      const query = tool === "serp.search" ? { keyword: "a" } : {};
      expect(await refusedAlike(keen, { tool, query, revision })).toMatch(/^Wait \d+ s, then retry\.$/);
    }
    const crowded = await service.organization({ terms: { ...endlessWindow, concurrency: 1 } });
    const running = service.search(crowded.token, { keyword: "sandbox:slow=1500" });
    await service.until(async () => (await service.holdsOf(crowded.organizationId)).open === 1);
    expect(await refusedAlike(crowded, { revision })).toContain("Wait until one of the 1 searches in flight ends");
    expect(await running).toMatchObject({ status: 200 });
  });

  test("400 for arguments of a tool that has none", async () => {
    const { token } = await service.organization();
    const agent = await Agent.connect(service, token, { revision });
    const { body, isError } = await agent.call("usage.get", { plan: "free" });
    expect({ isError, error: body.error }).toMatchObject({
      isError: true,
      error: { code: "bad_request", details: { issues: [{ path: "plan" }] } },
    });
    await agent.close();
  });
});

test("503 unavailable, where nobody runs searches", async () => {
  const organization = await service.organization();
  await Promise.all(service.workers.map((worker) => worker.stop()));
  await service.until(async () => (await service.search(organization.token, { keyword: "a" })).status === 503);
  for (const revision of both) {
    expect(await refusedAlike(organization, { revision })).toBe("Nothing was charged. Wait 1 s, then retry.");
  }
});

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

/** Asks by both doors; what a tool says is an error of REST's, told as a result. @returns the advice. */
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
  const [json = "", advice = ""] = byAgent.texts;
  expect(JSON.parse(json)).toEqual(byAgent.body);
  return advice;
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
  { status: 400, code: "bad_request", query: { keyword: "a", depth: 0, colour: "red" }, advice: "Mend the arguments" },
  { status: 400, code: "bad_request", query: { keyword: "a", location: "Springfield" }, advice: "Mend the arguments" },
  { status: 501, code: "not_implemented", query: { keyword: "a", engine: "bing" }, advice: "another engine" },
  { status: 502, code: "engine_error", query: { keyword: "sandbox:error" }, advice: "Nothing was charged" },
  { status: 502, code: "engine_error", query: { keyword: "sandbox:refused" }, advice: "Nothing was charged" },
  { status: 502, code: "engine_error", query: { keyword: "sandbox:garbage" }, advice: "Nothing was charged" },
  { status: 504, code: "engine_timeout", query: { keyword: "sandbox:timeout" }, advice: "Nothing was charged" },
];

describe.each(both)("in %s", (revision) => {
  test.each(wrong)("$status $code for $query", async ({ code, query, advice }) => {
    const organization = await service.organization({ creditMils: 100, terms: endlessWindow });
    expect(await refusedAlike(organization, { query, revision })).toContain(advice);
    await service.rest();
    const entries = (await service.ledgerOf(organization.organizationId)).slice(1);
    expect(entries.filter(({ kind, reason }) => kind !== "refund" || reason !== code)).toEqual([]);
    expect((await service.usage(organization.token)).body.creditBalanceMils).toBe(100);
  });

  test("402 plan_required and out_of_credits, with where to top up", async () => {
    const reader = await service.organization({ terms: { operations: ["usage.get"] } });
    expect(await refusedAlike(reader, { revision })).toContain("Do not call again");
    const poor = await service.organization({ creditMils: 3 });
    expect(await refusedAlike(poor, { revision })).toContain("top up at https://serp.example/billing.");
  });

  test("429 rate_limited for a full window and for too many in flight, with how long to wait", async () => {
    const keen = await service.organization({ terms: { windowLimit: 1, windowSeconds: 1_000_000 } });
    await service.usage(keen.token);
    for (const tool of ["serp.search", "usage.get"]) {
      const query = tool === "serp.search" ? { keyword: "a" } : {};
      expect(await refusedAlike(keen, { tool, query, revision })).toMatch(/^Wait \d+ s, then call again\.$/);
    }
    const crowded = await service.organization({ terms: { ...endlessWindow, concurrency: 1 } });
    const running = service.search(crowded.token, { keyword: "sandbox:slow=1500" });
    await service.until(async () => (await service.holdsOf(crowded.organizationId)).open === 1);
    expect(await refusedAlike(crowded, { revision })).toContain("Let one of the 1 searches in flight end");
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
    expect(await refusedAlike(organization, { revision })).toBe("Nothing was charged. Wait 1 s, then call again.");
  }
});

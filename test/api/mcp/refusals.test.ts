import { describe, expect, test } from "vitest";
import { errorHint } from "../../../api/mcp/error-hint.ts";
import { CallerError, messageOf } from "../../../shared/errors.ts";
import { Agent, type Revision, revisionNames, type ToolAnswer } from "../../harness/clients/agent.ts";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import type { Answer, Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** A tool fails with the same error as REST, as a result that a model can read. Both of its copies say what to do next. */

const service = await usualService();

/** Sends the same request over MCP and REST and expects the same error. @returns the hint of the tool's result. */
async function refusedAlike(
  { token }: Organization,
  { query = { keyword: "a" }, tool = "serp.search", revision = "2026-07-28", api = 0 }: RefusalOptions,
): Promise<string> {
  const agent = await Agent.connect(service, token, { revision, api });
  const [byAgent, byRest] = await Promise.all([
    agent.call(tool, query),
    tool === "serp.search" ? service.search(token, query, { api }) : service.usage(token, api),
  ]);
  await agent.close();
  expect(byAgent.isError).toBe(true);
  expect(byAgent.body.requestId).toMatch(/^req_/);
  expect(errorOf(byAgent)).toEqual(errorOf(byRest));
  expect(byAgent.texts.map((text) => JSON.parse(text))).toEqual([byAgent.body]);
  return byAgent.body.error.nextStep;
}

interface RefusalOptions {
  query?: object & Record<string, unknown>;
  tool?: string;
  revision?: Revision;
  api?: number;
}

/** The error that both share, without the window's retry time, which its message says too: it changes between the two requests. */
function errorOf({ body }: ToolAnswer | Answer) {
  const { nextStep: _, ...error } = body.error;
  const { code, details } = error;
  if (details.reason !== "window") return error;
  expect(error.message).toBe(messageOf(code, details));
  return { code, details: { ...details, retryAfterMs: expect.any(Number) } };
}

const fixFields = "Fix the fields listed in `error.details.issues`";
const wrong: { query: Record<string, unknown>; hint: string; reason?: string }[] = [
  { query: { keyword: "a", depth: 0, colour: "red" }, hint: fixFields },
  { query: { keyword: "a", location: "Springfield" }, hint: fixFields },
  { query: { keyword: "a", engine: "bing" }, hint: "error.details.supported" },
  { query: { keyword: "sandbox:error" }, hint: "Wait a minute", reason: "provider_unavailable" },
  { query: { keyword: "sandbox:refused" }, hint: "Do not retry", reason: "provider_refused" },
  { query: { keyword: "sandbox:garbage" }, hint: "Retry once", reason: "unreadable_answer" },
];

/** Calls the tool with a query that fails. @returns the hint, and the ledger and the balance afterwards. */
async function failedCall(query: Record<string, unknown>, revision: Revision) {
  const organization = await service.organization({ creditMils: 100, terms: endlessWindow });
  const hint = await refusedAlike(organization, { query, revision });
  const { organizationId, token } = organization;
  await service.until(async () => (await service.holdsOf(organizationId)).open === 0);
  const entries = (await service.ledgerOf(organizationId)).slice(1).map(({ kind, reason }) => `${kind} ${reason}`);
  return { hint, entries: new Set(entries), balanceMils: (await service.usage(token)).body.creditBalanceMils };
}

describe.each(revisionNames)("in %s", (revision) => {
  test.each(wrong)("$query fails as in REST, with the hint $hint", async ({ reason, query, hint }) => {
    // A query that is rejected before admission leaves no entry.
    const entries = new Set(reason === undefined ? [] : [`refund ${reason}`]);
    const failed = { hint: expect.stringContaining(hint), entries, balanceMils: 100 };
    expect(await failedCall(query, revision)).toEqual(failed);
  });

  test("402 plan_required, with the depth of the plan", async () => {
    const reader = await service.organization({ terms: { operations: ["usage.get"] } });
    expect(await refusedAlike(reader, { revision })).toContain("Do not retry");
    const shallow = await service.organization({ terms: { maxDepth: 20 } });
    const tooDeep = { revision, query: { keyword: "a", depth: 30 } };
    expect(await refusedAlike(shallow, tooDeep)).toContain("Retry with a `depth` of at most 20.");
  });

  test("429 rate_limited for a full window and for too many searches in flight, with the time to wait", async () => {
    const limited = await service.organization({ terms: { windowLimit: 1, windowSeconds: 1_000_000 } });
    await service.usage(limited.token);
    for (const tool of ["serp.search", "usage.get"]) {
      const query = tool === "serp.search" ? { keyword: "a" } : {};
      expect(await refusedAlike(limited, { tool, query, revision })).toMatch(/^Wait \d+ s, then retry\.$/);
    }
    const crowded = await service.organization({ terms: { ...endlessWindow, concurrency: 1 } });
    const caller = new AbortController();
    const { signal } = caller;
    service.search(crowded.token, { keyword: "sandbox:timeout" }, { signal }).catch(() => undefined);
    await service.until(async () => (await service.holdsOf(crowded.organizationId)).open === 1);
    expect(await refusedAlike(crowded, { revision })).toContain("Wait until one of the 1 searches in flight ends");
    caller.abort();
  });

  test("400 for arguments of a tool without arguments", async () => {
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

test("503 unavailable says whether the search may have run", () => {
  const hintFor = (reason: string) => errorHint(new CallerError("unavailable", { reason, retryAfterMs: 1_000 }), "");
  expect(hintFor("no_workers")).toBe("Nothing was charged. Wait 1 s, then retry.");
  expect(hintFor("redis_unreachable")).toMatch(/^Nothing was charged, unless .* Wait 1 s, then retry\.$/);
});

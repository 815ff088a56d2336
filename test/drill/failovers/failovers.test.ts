import { describe, expect, test } from "vitest";
import type { Attempt } from "../../faults/audit/evidence.ts";
import { type FailoverResult, missesOf } from "./failover.ts";
import { outageMsOf } from "./outage.ts";
import { failoverConclusion, failoverReport } from "./report.ts";

/** The parts of `npm run drill -- failovers` that need no processes. */

describe("an outage lasts", () => {
  const attempt = (sentAtMs: number, ms: number, status: number): Attempt => ({
    organizationId: "org_1",
    tokenId: "tok_1",
    keyword: "pump",
    key: undefined,
    priceMils: 5,
    api: 0,
    sentAtMs,
    endedAtMs: sentAtMs + ms,
    answer: { status, requestId: "req_1", text: "", replayed: false },
  });
  const good = (sentAtMs: number) => attempt(sentAtMs, 50, 200);
  const bad = (sentAtMs: number, ms = 10) => attempt(sentAtMs, ms, 503);
  const window = { fromMs: 1_000, toMs: 9_000 };

  test.each([
    { what: "no time if every search is answered at once", attempts: [good(1_100), good(1_200)], outageMs: 0 },
    {
      what: "from the first failure to the first search after the last failure",
      attempts: [good(1_100), bad(2_000), good(2_500), bad(3_000), good(3_500)],
      outageMs: 1_500,
    },
    { what: "as long as answers are slow", attempts: [attempt(2_000, 1_001, 200), good(4_000)], outageMs: 2_000 },
    {
      what: "from the beginning of the window, if a search was under way then",
      attempts: [bad(500, 3_000), good(1_400)],
      outageMs: 400,
    },
    { what: "for ever, if no search is answered again", attempts: [good(1_100), bad(2_000)], outageMs: undefined },
    { what: "no time, if the failure came after the window", attempts: [good(1_100), bad(8_995)], outageMs: 0 },
  ])("$what", ({ attempts, outageMs }) => {
    expect(outageMsOf(attempts, window)).toBe(outageMs);
  });

  test("from the given moment, if it counts from there", () => {
    const attempts = [bad(2_000), good(3_500)];
    expect(outageMsOf(attempts, { ...window, sinceMs: 3_000 })).toBe(500);
    expect(outageMsOf(attempts, { ...window, sinceMs: 4_000 })).toBe(0);
  });
});

const met: FailoverResult = {
  name: "redis-killed",
  what: "Redis is killed",
  outageMsMax: 10_000,
  since: "outage",
  searches: 200,
  failed: "20 × 503",
  failedCount: 20,
  outages: [
    { what: undefined, outageMs: 4_210 },
    { what: "once it runs again", outageMs: 0 },
  ],
  lostMils: 0,
  namedMils: 0,
  restarts: 0,
  broken: [],
};

test.each([
  { result: met, cells: ["20 of 200: 20 × 503", "4.2 s, 0.0 s once it runs again", "10 s", "yes"] },
  { result: { ...met, since: "recovery" as const }, cells: ["10 s after the recovery", "yes"] },
  { result: { ...met, outages: [{ what: undefined, outageMs: 10_001 }] }, cells: ["NO: no answers for 10.0 s"] },
  {
    result: { ...met, outages: [{ what: "x", outageMs: undefined }] },
    cells: ["NO: no answers for more than a minute x"],
  },
  { result: { ...met, lostMils: 15, namedMils: 15 }, cells: ["15, of which the service names 15", "yes"] },
  { result: { ...met, lostMils: 15, namedMils: 10 }, cells: ["NO: 15 mils lost, 10 named"] },
  { result: { ...met, restarts: 1 }, cells: ["NO: 1 processes restarted"] },
  { result: { ...met, broken: ["the books differ"] }, cells: ["NO: the books differ"] },
])("the report shows $cells, and fails what is outside of its target", ({ result, cells }) => {
  const report = failoverReport([result]);
  for (const cell of cells) expect(report).toContain(cell);
  const isMissed = cells.some((cell) => cell.startsWith("NO"));
  expect(missesOf(result).length > 0).toBe(isMissed);
  expect(failoverConclusion([result]).startsWith("1 of 1 failovers missed a target: redis-killed")).toBe(isMissed);
});

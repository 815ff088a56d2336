import { describe, expect, test } from "vitest";
import type { Attempt } from "../../faults/audit/evidence.ts";
import { outageMsOf } from "./outage.ts";

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

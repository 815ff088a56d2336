import { expect, test } from "vitest";
import { TokenLookups } from "../../api/identity-cache.ts";
import { openMetrics } from "../../shared/metrics.ts";

/** The lanes and the bound of token lookups, with a stand-in for Postgres. */

const plan = {
  code: "payg",
  price_mils: 5,
  price_per_page_mils: null,
  cached_price_mils: null,
  max_depth: null,
  window_limit: 600,
  window_seconds: 60,
  concurrency: 100,
  unpaid_calls: 1_000,
  starting_grant_mils: 0,
  operations: ["serp.search"],
};
const rowOf = (tokenHash: string) => ({
  organization_id: `org of ${tokenHash}`,
  token_id: `id of ${tokenHash}`,
  scopes: ["search"],
  suspended: false,
  day_limit_mils: null,
  month_limit_mils: null,
  token_day_limit_mils: null,
  token_month_limit_mils: null,
  keeps_answers: false,
  ...plan,
});

/** Lookups whose batches wait until the test ends them. */
function openLookups() {
  const batches: { hashes: readonly string[]; end: (valid: readonly string[]) => void }[] = [];
  const findCallers = (hashes: readonly string[]) =>
    new Promise<Map<string, unknown>>((resolve) => {
      const end = (valid: readonly string[]) => resolve(new Map(valid.map((hash) => [hash, rowOf(hash)])));
      batches.push({ hashes, end });
    });
  const metrics = openMetrics();
  const lookups = new TokenLookups({ findCallers, metrics });
  const nextBatch = () =>
    expect
      .poll(() => batches.length)
      .toBeGreaterThan(0)
      .then(() => batches.shift());
  return { lookups, metrics, nextBatch };
}

const manyTokens = (count: number) => Array.from({ length: count }, (_, nth) => `made-up ${nth}`);

test("a token that was valid lately does not wait for made-up tokens", async () => {
  const { lookups, nextBatch } = openLookups();
  const first = lookups.find("known");
  (await nextBatch())?.end(["known"]);
  expect((await first)?.organizationId).toBe("org of known");

  const flood = manyTokens(900).map((token) => lookups.find(token));
  const ofFlood = await nextBatch();
  expect(ofFlood?.hashes).toHaveLength(500);
  const again = lookups.find("known");
  const alone = await nextBatch();
  expect(alone?.hashes).toEqual(["known"]);
  alone?.end(["known"]);
  expect(await again).toBeDefined();
  ofFlood?.end([]);
  (await nextBatch())?.end([]);
  expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined]));
});

test("a token that is not valid any more waits with the made-up ones", async () => {
  const { lookups, nextBatch } = openLookups();
  for (const valid of [["revoked", "known"], ["known"]]) {
    const found = ["revoked", "known"].map((token) => lookups.find(token));
    (await nextBatch())?.end(valid);
    await Promise.all(found);
  }
  const madeUp = lookups.find("made-up");
  const ofFlood = await nextBatch();
  const revoked = lookups.find("revoked");
  const known = lookups.find("known");
  const alone = await nextBatch();
  expect(alone?.hashes).toEqual(["known"]);
  for (const batch of [alone, ofFlood]) batch?.end(["known"]);
  const after = await nextBatch();
  expect(after?.hashes).toEqual(["revoked"]);
  after?.end([]);
  expect(await Promise.all([madeUp, revoked, known])).toMatchObject([undefined, undefined, { suspended: false }]);
});

test("beyond a thousand waiting made-up tokens the next one is refused with 503, and there is room again once they are done", async () => {
  const { lookups, metrics, nextBatch } = openLookups();
  const flood = manyTokens(1_000).map((token) => lookups.find(token));
  await expect(lookups.find("one more")).rejects.toMatchObject({
    code: "unavailable",
    details: { reason: "token_lookups_full", retryAfterMs: 1_000 },
  });
  for (let batch = 0; batch < 2; batch += 1) (await nextBatch())?.end([]);
  await Promise.all(flood);
  const next = lookups.find("one more");
  (await nextBatch())?.end(["one more"]);
  expect(await next).toBeDefined();
  const { values } = await metrics.tokenLookups.get();
  expect(values.find(({ labels }) => labels.outcome === "refused")?.value).toBe(1);
});

test("a batch that fails fails only its own lookups", async () => {
  let fails = true;
  const findCallers = async (hashes: readonly string[]) => {
    if (fails) throw new Error("connection lost");
    return new Map(hashes.map((hash) => [hash, rowOf(hash)]));
  };
  const lookups = new TokenLookups({ findCallers, metrics: openMetrics() });
  await expect(lookups.find("a")).rejects.toThrow("connection lost");
  fails = false;
  expect(await lookups.find("a")).toBeDefined();
});

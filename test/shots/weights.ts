/**
 * The kilobytes that a page may send to a browser with an empty cache, a fifth more than measured (`npm run bench -- pages`). The
 * longest name counts that the state begins with.
 */
const kbMax: Record<string, number> = {
  landing: 8,
  reference: 1_400,
  "sign-in": 12,
  "not-found": 12,
  overview: 52,
  "overview-dollars-90-days": 97,
  searches: 29,
  search: 57,
  "search-not-charged": 15,
  playground: 22,
  "playground-answer": 60,
  token: 18,
  payments: 16,
  "payments-automatic": 18,
  statement: 25,
  settings: 19,
};

/** @throws {Error} for a page without a bound. */
export function bytesMaxOf(state: string): number {
  const [name = ""] = Object.keys(kbMax)
    .filter((known) => state === known || state.startsWith(known))
    .toSorted((a, b) => b.length - a.length);
  const kb = kbMax[name];
  if (kb === undefined) throw new Error(`weights.ts has no bound for ${state}`);
  return kb * 1_000;
}

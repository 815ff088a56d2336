/**
 * The kilobytes that a page may send to a browser with an empty cache, a fifth more than measured (`npm run bench -- pages`), and at
 * most 60, the reference apart. The longest name counts that the state begins with.
 */
const kbMax: Record<string, number> = {
  landing: 10,
  reference: 1_400,
  "sign-in": 16,
  "not-found": 16,
  overview: 52,
  "overview-dollars-90-days": 60,
  searches: 34,
  search: 60,
  "search-not-charged": 25,
  "search-refused": 21,
  playground: 29,
  "playground-answer": 60,
  token: 24,
  // A refused form answers in place, so it has loaded two pages.
  "token-refused": 30,
  payments: 18,
  "payments-automatic": 21,
  "payments-automatic-refused": 27,
  statement: 33,
  settings: 21,
  "settings-refused": 31,
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

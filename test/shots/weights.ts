/**
 * The kilobytes that a page may send to a browser with an empty cache: a fifth more than it did when they were measured
 * (`npm run bench -- pages`). The longest name that a state begins with counts.
 */
const kbMax: Record<string, number> = {
  landing: 8,
  reference: 1_400,
  "sign-in": 10,
  "not-found": 10,
  overview: 50,
  "overview-dollars-90-days": 95,
  searches: 25,
  search: 44,
  "search-not-charged": 13,
  playground: 20,
  "playground-answer": 60,
  token: 15,
  payments: 13,
  statement: 23,
  settings: 17,
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

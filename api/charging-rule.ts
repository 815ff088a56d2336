/** What is charged, in one sentence for callers and operators. `test/docs/charging-rule.test.ts` has all the places that say it. */
export const chargingRule =
  "A search is charged once the API has handed over a whole copy of its answer, even if a proxy or the network then loses it; " +
  "with an Idempotency-Key it is charged as soon as it is answered, and the key returns that answer for 24 hours without " +
  "another charge; a search that fails costs nothing.";

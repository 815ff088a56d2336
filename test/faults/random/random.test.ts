import { expect, test } from "vitest";
import { runSeed } from "./run.ts";

test("searches under faults at random: no mil is lost, doubled or given away, and nobody waits for ever", {
  timeout: 180_000,
}, async () => {
  // What is fast is measured, and not tested; the callers' own patience ends 6 s behind the deadline.
  const options = { seed: 2, searches: 250, lateMsMax: 5_900, say: () => undefined };
  const { broken, faults, charged, seed } = await runSeed(options);
  expect({ seed, broken }).toEqual({ seed, broken: [] });
  expect(faults.length).toBeGreaterThan(2);
  expect(charged).toBeGreaterThan(100);
});

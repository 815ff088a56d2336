import { expect, test } from "vitest";
import { runSeed } from "./run.ts";

test("under random faults no mil is lost, doubled or given away, and every caller gets an outcome", async () => {
  // The command measures how fast answers are. The callers' own timeout is 6 s after the deadline.
  const options = { seed: 1, searches: 120, lateMsMax: 5_900, say: () => undefined };
  const { broken, faults, charged, corrections, seed } = await runSeed(options);
  expect({ seed, broken }).toEqual({ seed, broken: [] });
  expect(faults.length).toBeGreaterThan(1);
  expect(charged).toBeGreaterThan(50);
  expect(corrections.made).toBeGreaterThan(0);
});

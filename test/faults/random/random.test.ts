import { expect, test } from "vitest";
import { runSeed } from "./run.ts";

test("searches under faults at random: no mil is lost, doubled or given away, and nobody waits for ever", {
  timeout: 180_000,
}, async () => {
  const { broken, faults, charged, seed } = await runSeed({ seed: 2, searches: 250, say: () => undefined });
  expect({ seed, broken }).toEqual({ seed, broken: [] });
  expect(faults.length).toBeGreaterThan(2);
  expect(charged).toBeGreaterThan(100);
});

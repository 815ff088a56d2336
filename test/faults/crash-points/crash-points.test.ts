import { expect, inject, test } from "vitest";
import { cases } from "./cases.ts";
import { steps } from "./points.ts";
import { runCrashPoints } from "./run.ts";

/** One case for each way to recover; `npm run faults -- crash-points` runs all of them. */
const chosen = [
  "worker:settle:after, no key, first delivery", // another worker takes over and finds the charge
  "worker:take:after, no key, first delivery", // the lease expires, and another worker calls the provider
  "api:enqueue:before, no key, first delivery", // the sweeper ends the hold
  "api:respond:before, key, first delivery", // the caller's retry is answered from the key
  "api:confirm:before, no key, first delivery", // in doubt: the reconciler reverses the charge
];

test("when a process dies at any step of a search, the ledger stays right and its caller pays only for answers that arrived", async () => {
  const rows = await runCrashPoints({
    postgresUrl: inject("postgresUrl"),
    among: cases.filter(({ name }) => chosen.includes(name)),
    stacks: 2,
    lateMsMax: 60_000, // The command measures how fast answers are.
    say: () => undefined,
  });
  expect(rows.filter(({ held }) => !held)).toEqual([]);
  expect(rows.map(({ what }) => what).toSorted()).toEqual(chosen.toSorted());
});

test("every step of a search has a crash point before and after it", () => {
  const covered = new Set(
    cases.flatMap(({ apis, workers }) => [...apis, ...workers].map((at) => `${at.step}:${at.edge}`)),
  );
  const missing = steps.flatMap((step) => [`${step}:before`, `${step}:after`]).filter((point) => !covered.has(point));
  // A process waits for what arrives and for jobs, and Redis hands them over: no death comes between.
  expect(missing).toEqual(["arrive:before", "take:before", "answer:before"]);
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});

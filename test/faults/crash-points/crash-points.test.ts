import { expect, inject, test } from "vitest";
import { cases } from "./cases.ts";
import { steps } from "./points.ts";
import { runCrashPoints } from "./run.ts";

/** A handful of them; `npm run faults -- crash-points` plays all. */
const telling = [
  "worker:settle:after, no key, first delivery",
  "worker:drop:after, key, first delivery",
  "api:enqueue:before, no key, first delivery",
  "api:respond:before, key, first delivery",
  "api:confirm:before, no key, first delivery",
  "caretaker:reverse:after:undelivered, no key, first delivery",
];

test("a process that dies at a step of a search's path leaves books that balance, and its caller pays for what arrived", {
  timeout: 240_000,
}, async () => {
  const rows = await runCrashPoints({
    postgresUrl: inject("postgresUrl"),
    among: cases.filter(({ name }) => telling.includes(name)),
    lanes: 3,
    lateMsMax: 20_000, // What is fast is measured, and not tested.
    say: () => undefined,
  });
  expect(rows.filter(({ held }) => !held)).toEqual([]);
  expect(rows.map(({ what }) => what).toSorted()).toEqual(telling.toSorted());
});

test("every step of a search's path has its crash points, before and after", () => {
  const played = new Set(
    cases.flatMap(({ apis, workers }) => [...apis, ...workers].map((at) => `${at.step}:${at.edge}`)),
  );
  const missing = steps.flatMap((step) => [`${step}:before`, `${step}:after`]).filter((point) => !played.has(point));
  expect(missing).toEqual(["arrive:before"]);
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});

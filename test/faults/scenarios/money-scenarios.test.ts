import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { freshRedis } from "../../harness/servers/servers.ts";
import type { Row } from "../report.ts";
import { measureDeadProvider } from "./dead-provider.ts";
import { equalSearchesSettings, measureEqualSearches } from "./equal-searches.ts";
import { measureKilledWorker } from "./killed-worker.ts";
import { measureLastOfLimit } from "./last-of-limit.ts";
import { ScenarioStack } from "./scenario-stack.ts";

/** More small scenarios, of workers with many slots; `npm run faults -- scenarios` has their full size. */

const servers = () => ({ postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis });
const timeout = 120_000;

let stack: ScenarioStack;
beforeAll(async () => {
  const settings = { ...equalSearchesSettings, SEARCH_DEADLINE_MS: "30000" };
  stack = await ScenarioStack.open(servers(), { apis: 2, workers: 2, settings });
}, timeout);
afterAll(() => stack.close());

const notHeld = (rows: readonly Row[]) => rows.filter(({ held }) => !held);

test("equal searches at once share one provider call, and each is charged", { timeout }, async () => {
  expect(notHeld(await measureEqualSearches(stack, 1))).toEqual([]);
});

test("a limit for some of many searches at once admits exactly those, also if a worker is killed", {
  timeout,
}, async () => {
  expect(notHeld(await measureLastOfLimit(stack, 2))).toEqual([]);
});

test("searches of a killed worker are answered by another one, and charged once", { timeout }, async () => {
  // How soon is measured by the command and not tested here.
  expect(notHeld(await measureKilledWorker(stack, { kills: 1, searches: 40, answeredMsMax: timeout }))).toEqual([]);
});

test("no search fails while the preferred of two providers fails, in each way in which it can", {
  timeout,
}, async () => {
  expect(notHeld(await measureDeadProvider(servers(), { searches: 60 }))).toEqual([]);
});

import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { freshRedis } from "../../harness/servers/servers.ts";
import type { Row } from "../report.ts";
import { equalSearchesSettings, measureEqualSearches } from "./equal-searches.ts";
import { measureLastOfLimit } from "./last-of-limit.ts";
import { ScenarioStack } from "./scenario-stack.ts";

/** More small scenarios, of workers with many slots; `npm run faults -- scenarios` has their full size. */

let stack: ScenarioStack;
beforeAll(async () => {
  const settings = { ...equalSearchesSettings, SEARCH_DEADLINE_MS: "30000" };
  const servers = { postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis };
  stack = await ScenarioStack.open(servers, { apis: 2, workers: 2, settings });
});
afterAll(() => stack.close());

const notHeld = (rows: readonly Row[]) => rows.filter(({ held }) => !held);

test("equal searches at once share one provider call, and each is charged", async () => {
  expect(notHeld(await measureEqualSearches(stack, 1))).toEqual([]);
});

test("a limit for some of many searches at once admits exactly those, also if a worker is killed", async () => {
  expect(notHeld(await measureLastOfLimit(stack, 1))).toEqual([]);
});

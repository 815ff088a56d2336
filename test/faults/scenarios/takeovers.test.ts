import { expect, inject, test } from "vitest";
import { freshRedis } from "../../harness/servers/servers.ts";
import type { Row } from "../report.ts";
import { measureDeadProvider } from "./dead-provider.ts";
import { killedWorkerSettings, measureKilledWorker } from "./killed-worker.ts";
import { withStack } from "./scenario-stack.ts";

/** Small scenarios that wait until another worker or provider takes over. */

const servers = () => ({ postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis });
const notHeld = (rows: readonly Row[]) => rows.filter(({ held }) => !held);

test("searches of a killed worker are answered by another one, and charged once", async () => {
  const options = { apis: 1, workers: 2, settings: killedWorkerSettings };
  const rows = await withStack(servers(), options, (stack) =>
    // How soon is measured by the command and not tested here.
    measureKilledWorker(stack, { kills: 1, searches: 12, answeredMsMax: Number.POSITIVE_INFINITY }),
  );
  expect(notHeld(rows)).toEqual([]);
});

test("no search fails while the preferred of two providers fails, in each way in which it can", async () => {
  expect(notHeld(await measureDeadProvider(servers(), { searches: 60 }))).toEqual([]);
});

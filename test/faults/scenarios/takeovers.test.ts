import { expect, test } from "vitest";
import { stackServers } from "../../harness/servers/servers.ts";
import { notHeld } from "../report.ts";
import { measureDeadProvider } from "./dead-provider.ts";
import { killedWorkerSettings, measureKilledWorker } from "./killed-worker.ts";
import { withStack } from "./scenario-stack.ts";

/** Small scenarios that wait until another worker or provider takes over. */

test("searches of a killed worker are answered by another one, and charged once", async () => {
  const options = { apis: 1, workers: 2, settings: killedWorkerSettings };
  const rows = await withStack(stackServers(), options, (stack) =>
    // How soon is measured by the command and not tested here.
    measureKilledWorker(stack, { kills: 1, searches: 12, answeredMsMax: Number.POSITIVE_INFINITY }),
  );
  expect(notHeld(rows)).toEqual([]);
});

test("no search fails while the preferred of two providers fails, in each way in which it can", async () => {
  expect(notHeld(await measureDeadProvider(stackServers(), { searches: 60 }))).toEqual([]);
});

import type { Drill } from "./drill.ts";
import { moneyDrills } from "./drills/money.ts";
import { processDrills } from "./drills/processes.ts";
import { providerDrills } from "./drills/providers.ts";
import { storeDrills } from "./drills/stores.ts";

/** Every drill, in the order of the report. */
export const drills: readonly Drill[] = [...storeDrills, ...processDrills, ...providerDrills, ...moneyDrills];

/** Alerts that no drill raises, each with the reason. Their promtool cases test them. */
export const notShown: Record<string, string> = {
  SearchesSlowTooOften: "it compares days and needs 40 minutes of slow answers",
  MaintenanceFails: "it takes a bug, or data that no process writes; a test of maintenance plants such data",
  MarginNegative: "it waits for an hour, over a window of another hour",
  ProviderRowsUnreadable: "it waits for half an hour",
  MonitoringDown: "it is about a program beside the service, which a drill needs",
  TransactionTooOld: "it compares 50,000 transactions",
  SandboxServes: "it reports a setting, not an outage",
  DiskFilling: "it takes a disk that may be filled; a file system in memory does not count",
  DiskFull: "it takes a disk that may be filled; a file system in memory does not count",
};

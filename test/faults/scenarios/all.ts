import { deadProvider } from "./dead-provider.ts";
import { equalSearches } from "./equal-searches.ts";
import { flushed } from "./flushed.ts";
import { killedWorker } from "./killed-worker.ts";
import { lastCredits } from "./last-credits.ts";
import { lastOfLimit } from "./last-of-limit.ts";
import { oneKey } from "./one-key.ts";
import { overload } from "./overload.ts";
import { rollingRestart } from "./rolling-restart.ts";
import type { Scenario } from "./scenario-stack.ts";

/** Every scenario, in the order in which they run. */
export const scenarios: readonly Scenario[] = [
  lastCredits,
  lastOfLimit,
  oneKey,
  equalSearches,
  deadProvider,
  killedWorker,
  flushed,
  rollingRestart,
  overload,
];

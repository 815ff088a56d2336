import type { Context } from "../shared/context.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import type { Engine } from "./engine/single-flight.ts";

/** What a worker has open beside what every process has. */
export interface WorkerContext extends Context {
  engine: Engine;
  settlement: Settlement;
}

import type { Queue } from "bullmq";
import type { Context } from "../shared/context.ts";
import type { Enqueue } from "../shared/queue.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import type { Authenticate, FindByTokenHash } from "./authenticate.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Inbox } from "./inbox.ts";
import type { KeyWaits } from "./key-waits.ts";
import type { Shedding } from "./shedding.ts";
import type { Topups } from "./topups/topups.ts";

/** What the API has open beside what every process has. */
export interface ApiContext extends Context {
  authenticate: Authenticate;
  findByTokenHash: FindByTokenHash;
  shedding: Shedding;
  queue: Queue;
  enqueue: Enqueue;
  inbox: Inbox;
  keyWaits: KeyWaits;
  settlement: Settlement;
  deliveries: Deliveries;
  /** Undefined where no payments are set up. */
  topups: Topups | undefined;
  /** Aborted when the process begins to stop: everything is served still, and each connection ends with its answer. */
  draining: AbortSignal;
}

import type { Context } from "../shared/context.ts";
import type { SearchQueue } from "../shared/queue/search-queue.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import type { Authenticate, FindByTokenHash } from "./authenticate.ts";
import type { DeliveryConfirmations } from "./search/delivery-confirmations.ts";
import type { ReplyInbox } from "./search/reply-inbox.ts";
import type { IdempotencyWaiters } from "./search/idempotency-waiters.ts";
import type { Shedding } from "./search/shedding.ts";
import type { ReadUsage } from "./read-usage.ts";
import type { Topups } from "./topups/topups.ts";

/** What the API has open beside what every process has. */
export interface ApiContext extends Context {
  authenticate: Authenticate;
  findByTokenHash: FindByTokenHash;
  readUsage: ReadUsage;
  shedding: Shedding;
  queue: SearchQueue;
  inbox: ReplyInbox;
  keyWaits: IdempotencyWaiters;
  settlement: Settlement;
  deliveries: DeliveryConfirmations;
  /** Undefined where no payments are set up. */
  topups: Topups | undefined;
  /** Aborted when the process begins to stop: everything is served still, and each connection ends with its answer. */
  draining: AbortSignal;
}

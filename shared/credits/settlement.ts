import type { Redis } from "ioredis";
import { Batcher } from "../concurrency/batcher.ts";
import type { Database } from "../database/pool.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { SearchOutcome, SearchTrace } from "../queue/replies.ts";
import { DecidedBatches } from "./decide-batches.ts";
import type { Decision, SettlementRequest } from "./ledger.ts";
import type { PayableCalls, SearchCalls } from "./unpaid-calls.ts";
import { type DecidedSearch, publishDecisions } from "./publish-decisions.ts";

/**
 * Ends searches in the one order that survives a crash at any point: Postgres decides, then Redis drops the hold and
 * remembers the answer, then the reply is sent. After a crash behind the first step, a second run finds the decision and
 * repeats the other steps. Without a second run the sweeper drops the hold and the reconciler reverses the charge.
 */

const publishedAtOnceMax = 256;
const retryPauseMs = 50;

/** A search to be ended. */
export interface SettleOptions {
  request: SettlementRequest;
  /** How long, in milliseconds, to retry while Postgres or Redis is unreachable. */
  retryForMs: number;
  /** The caller's answer or error, once it is decided who pays. */
  toOutcome: (decision: Decision) => SearchOutcome;
  /** Where to send the outcome; absent if the process that settles also answers. */
  reply?: { inbox: string; trace: SearchTrace; payable?: PayableCalls | undefined } | undefined;
  /**
   * The hold, if a failure meets an earlier charge: `keep_hold`, because the process that charged still sends its answer
   * and drops the hold; or `end_hold` and free its key, because that answer will not come any more.
   */
  ifCharged: "keep_hold" | "end_hold";
  /** Whether its caller hung up while a worker had it: refunded for that, it keeps its place in flight without mils. */
  isAbandoned?: boolean | undefined;
  /** Its provider calls, which may count as unpaid; see unpaid-calls.ts. */
  calls?: SearchCalls | undefined;
}

export interface Settlement {
  /**
   * Ends one search, in a batch with all others that are ready.
   * @throws if Postgres stayed unreachable (the decision is unknown then), or refused the search; an
   *   `UnknownOrganization` if it does not have the organization.
   */
  settle(search: SettleOptions): Promise<Decision>;
  /** Resolves once every search handed in has ended. */
  idle(): Promise<void>;
}

interface Pending extends SettleOptions {
  giveUpAtMs: number;
  resolve: (decision: Decision) => void;
  reject: (error: unknown) => void;
}

type Decided = Pending & DecidedSearch;

export function openSettlement(options: { database: Database; redis: Redis; metrics: Metrics; log: Log }): Settlement {
  const { database, redis, metrics } = options;
  const warn = throttledWarning(options.log, "a settlement was not accepted at once");

  /** Publishes decisions. What Redis does not take is tried again apart from the next batches, which do not wait for it. */
  async function publishBatch(decided: Decided[]): Promise<void> {
    const { published, unpublished, unpaidCalls } = await publishDecisions(redis, decided);
    metrics.unpaidCalls.inc(unpaidCalls);
    for (const search of published) finish(metrics, search);
    for (const { search, error } of unpublished) {
      warn(error);
      // The sweeper and the reconciler finish what Redis does not accept in time.
      if (performance.now() < search.giveUpAtMs) retries.add(search);
      else finish(metrics, search);
    }
  }

  const batches = new DecidedBatches<Pending>({
    database,
    metrics,
    warn,
    onDecided: (decided) =>
      publishBatch(
        decided.map(({ search, decision }) => ({ ...search, decision, outcome: search.toOutcome(decision) })),
      ),
  });
  const retries = new Batcher<Decided>({
    sizeMax: publishedAtOnceMax,
    concurrency: 1,
    pauseMs: retryPauseMs,
    run: publishBatch,
  });
  return {
    settle: (search) =>
      new Promise((resolve, reject) => {
        batches.add({ ...search, giveUpAtMs: performance.now() + search.retryForMs, resolve, reject });
      }),
    idle: async () => {
      await batches.idle();
      await retries.idle();
    },
  };
}

/** Counts a decision and hands it to the process that settled. */
function finish(metrics: Metrics, { decision, resolve }: Decided): void {
  if (decision.isNew) {
    metrics.settlements.inc({ kind: decision.kind, reason: decision.reason ?? "delivered" });
    metrics.chargedMils.inc(decision.chargedMils);
  }
  resolve(decision);
}

import type { Redis } from "ioredis";
import type { Context } from "../../shared/process/context.ts";
import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import { CallerError } from "../../shared/errors.ts";
import { capabilities, unsupportedField } from "../../shared/capabilities/capabilities.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { OpenSearches } from "../../shared/credits/admit.ts";
import { countOpenOrganizations } from "../../shared/credits/open-holds.ts";
import type { Query } from "../../shared/query/query.ts";
import { type Backlog, readBacklog, readOldestWaitMs } from "../../shared/queue/backlog.ts";
import { shareOf, turnOf } from "../../shared/queue/turns.ts";
import { readWorkerCapacity, type WorkerCapacity } from "../../shared/queue/worker-heartbeats.ts";
import type { Clock } from "../../shared/redis/clock.ts";
import { unavailable } from "../errors.ts";

// A search is admitted if its expected wait is at most this share of its remaining time. The rest covers what the estimate
// cannot know: a worker that has just died, a slower provider, searches that other API processes enqueue meanwhile.
const waitShareMax = 0.5;
const retryAfterMinMs = 1_000;
const retryAfterMaxMs = 30_000;

/** No search is admitted for an organization with so many open ones. `error` is what its caller gets. */
interface Refusal {
  openMax: number;
  error: CallerError;
}

interface SheddingParts {
  redis: Redis;
  clock: Clock;
  /** Aborted when the process is asked to stop: searches are admitted only while there are workers. */
  draining: AbortSignal;
  /** Aborted when the process stops: every new search is refused. */
  stopping: AbortSignal;
}

/**
 * Load shedding: refuses a search that could not be answered before its deadline. An organization is never refused within its
 * share (turns.ts). Beyond its share it is refused by how long its own search would wait: for its own searches, and not for
 * those of others.
 *
 * Backlog and capacity are read in the background while searches arrive, never on their path; searches admitted since the last
 * reading are counted here. The capacity is read as often as the backlog, because workers raise their slots within a second of
 * a new load. The slots that they can still add count already: otherwise the first searches of a new load would be refused,
 * although they would be answered in time.
 */
export class Shedding {
  readonly #parts: SheddingParts;
  #capacity: WorkerCapacity | undefined;
  #workersSeenAtMs = Number.NEGATIVE_INFINITY;
  #postgresReachedAtMs = Number.NEGATIVE_INFINITY;
  #maySettle = true;
  #backlog: Backlog = { waiting: 0, running: 0, turn: 0 };
  #organizations = 0;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #admitted = 0;
  #admittedAtReading = 0;

  constructor(parts: SheddingParts) {
    this.#parts = parts;
  }

  /**
   * Stores a new reading. No workers at all counts only after a heartbeat timeout: a flushed Redis has no heartbeats either.
   * While this process stops it counts at once: the workers are being stopped too, and the searches would end with a 504.
   * That no worker reaches Postgres counts only after the same time: searches outlast a shorter outage, as of a failover.
   */
  updateCapacity(capacity: WorkerCapacity): void {
    const nowMs = performance.now();
    if (capacity.workers > 0) this.#workersSeenAtMs = nowMs;
    if (capacity.reachesPostgres || capacity.workers === 0) this.#postgresReachedAtMs = nowMs;
    this.#maySettle = nowMs - this.#postgresReachedAtMs < protocolTimes.heartbeatTimeoutMs;
    const wereSeen = nowMs - this.#workersSeenAtMs < protocolTimes.heartbeatTimeoutMs;
    if (capacity.workers === 0 && wereSeen && !this.#parts.draining.aborted) return;
    this.#capacity = capacity;
  }

  /** Reads queue, organizations with open searches and capacity, in one round trip. @throws if Redis does not answer. */
  async refresh(): Promise<{ backlog: Backlog; capacity: WorkerCapacity }> {
    this.#askedAtMs = performance.now();
    // A search admitted during the reading may be counted twice, which is safer than not at all.
    const admitted = this.#admitted;
    const { redis, clock } = this.#parts;
    const [backlog, capacity, organizations] = await Promise.all([
      readBacklog(redis),
      readWorkerCapacity(redis, clock.nowMs()),
      countOpenOrganizations(redis),
    ]);
    this.#backlog = backlog;
    this.#organizations = organizations;
    this.#admittedAtReading = admitted;
    this.updateCapacity(capacity);
    this.#readAtMs = performance.now();
    return { backlog, capacity };
  }

  /** A readiness check: rejects unless workers and queue were read lately. That there are no workers is a reading too. */
  async check(): Promise<void> {
    if (performance.now() - this.#readAtMs > protocolTimes.heartbeatTimeoutMs) throw new Error("not read lately");
  }

  /** Counts a search that goes into the queue. */
  countAdmitted(): void {
    this.#admitted += 1;
  }

  /** The turn in the queue of a search that was admitted. */
  turnOf({ openSearches, organizations }: OpenSearches): number {
    const share = shareOf({ slots: this.#capacity?.slots ?? 0, organizations });
    return turnOf(openSearches, { share, comingTurn: this.#backlog.turn });
  }

  /** The refusal of a query that no worker's providers support. Providers that this release does not know support any. */
  unsupported(query: Query): Refusal | undefined {
    const providers = this.#capacity?.providers?.map((name) => capabilities[name]);
    const field = providers && unsupportedField(providers, query);
    return field && { openMax: 0, error: new CallerError("query_rejected", { reason: "unsupported", field }) };
  }

  /** Which searches with so much time left are refused; undefined if none is. */
  refusal(remainingMs: number): Refusal | undefined {
    if (this.#parts.stopping.aborted) return { openMax: 0, error: unavailable("shutting_down") };
    if (!this.#capacity || this.#capacity.workers === 0) return { openMax: 0, error: unavailable("no_workers") };
    // The periodic reading below makes the same query and logs its errors.
    if (performance.now() - this.#askedAtMs >= protocolTimes.heartbeatReadingMs)
      void this.refresh().catch(() => undefined);
    if (!this.#maySettle) return { openMax: 0, error: unavailable("postgres_unreachable") };

    const { slots, ratePerMs } = this.#capacity;
    const ahead = this.#backlog.waiting + this.#backlog.running + this.#admitted - this.#admittedAtReading;
    if (ahead < slots) return undefined;
    const waitMs = expectedWaitMs(ahead, this.#capacity);
    const runMs = slots / ratePerMs;
    const waitMsMax = Math.max(0, Math.min(remainingMs * waitShareMax, remainingMs - runMs));
    const excessMs = waitMs - waitMsMax;
    if (excessMs <= 0) return undefined;
    // Each round starts a search of every organization.
    const rounds = (waitMsMax * ratePerMs) / Math.max(1, this.#organizations);
    const retryAfterMs = Math.min(Math.max(Math.ceil(excessMs), retryAfterMinMs), retryAfterMaxMs);
    const share = shareOf({ slots, organizations: this.#organizations });
    return { openMax: Math.floor(share + rounds), error: unavailable("queue_too_long", retryAfterMs) };
  }
}

/** How long a search waits behind so many others, which take at least all slots. */
function expectedWaitMs(ahead: number, { slots, slotsCeiling, ratePerMs }: WorkerCapacity): number {
  const waitMs = (ahead - slots + 1) / ratePerMs;
  const raised = Math.min(ahead + 1, slotsCeiling);
  const raisingMs = Math.ceil(Math.log2(raised / slots)) * protocolTimes.slotDoublingMs;
  const raisedWaitMs = (ahead - raised + 1) / (ratePerMs * (raised / slots));
  return Math.min(waitMs, raisingMs + raisedWaitMs);
}

/** Starts to read workers and queue periodically, and reports them as metrics. */
export function openShedding(parts: SheddingParts & Pick<Context, "metrics" | "log" | "shutdown">): Shedding {
  const { redis, clock, metrics, log, shutdown, draining, stopping } = parts;
  const shedding = new Shedding(parts);
  draining.addEventListener("abort", () => {
    // The periodic reading below logs the errors.
    const read = () => void shedding.refresh().catch(() => undefined);
    const timer = setInterval(read, protocolTimes.heartbeatReadingMs);
    stopping.addEventListener("abort", () => clearInterval(timer));
    read();
  });
  const measured = [metrics.queueDepth, metrics.workersReporting, metrics.queueOldestSeconds];
  const run = async () => {
    const [{ backlog, capacity }] = await Promise.all([shedding.refresh(), clock.read(redis)]);
    metrics.queueDepth.set(backlog.waiting);
    metrics.workersReporting.set(capacity.workers);
    const oldestMs = backlog.waiting === 0 ? 0 : await readOldestWaitMs(redis, clock.nowMs());
    metrics.queueOldestSeconds.set(oldestMs / 1_000);
  };
  const pauseMs = protocolTimes.heartbeatIntervalMs;
  runPeriodically({ name: "shedding", pauseMs, run, measured, log, metrics, shutdown });
  return shedding;
}

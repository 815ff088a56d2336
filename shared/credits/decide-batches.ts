import { Batcher } from "../concurrency/batcher.ts";
import { retryWhile } from "../concurrency/retry.ts";
import type { Database } from "../database/pool.ts";
import { isLockTimeout, isTransient } from "../database/transient-errors.ts";
import type { Metrics } from "../metrics.ts";
import { type Decision, decideSettlements, type SettlementRequest } from "./ledger.ts";
import { findLocked, LockedOrganizations } from "./locked-organizations.ts";

const batchSizeMax = 256;
const batchConcurrency = 2;
const retryPauseMs = 50;

/** Postgres does not have the organization of a search, so the search has no decision. */
export class UnknownOrganization extends Error {}

/** A search whose end Postgres has to decide. */
export interface Undecided {
  request: SettlementRequest;
  /** Until when to try, as a time of `performance.now()`. */
  giveUpAtMs: number;
  reject: (error: unknown) => void;
}

interface Parts<Search extends Undecided> {
  database: Database;
  metrics: Pick<Metrics, "settlementRetries" | "settlementBatch">;
  warn: (error: unknown) => void;
  /** Gets the searches of a batch that are decided. It must not reject. */
  onDecided: (decided: { search: Search; decision: Decision }[]) => Promise<void>;
}

/**
 * Has Postgres decide searches, in batches of all that are ready, and again while it is unreachable. A search that it refuses, or
 * whose time is over, is rejected. One whose organization is locked waits apart from those of other organizations.
 */
export class DecidedBatches<Search extends Undecided> {
  readonly #parts: Parts<Search>;
  readonly #batches: Batcher<Search>;
  readonly #locked: LockedOrganizations<Search>;

  constructor(parts: Parts<Search>) {
    this.#parts = parts;
    const run = (batch: Search[]) => this.#decideAll(batch);
    this.#batches = new Batcher({ sizeMax: batchSizeMax, concurrency: batchConcurrency, run });
    this.#locked = new LockedOrganizations({ sizeMax: batchSizeMax, attempt: (batch) => this.#attempt(batch) });
  }

  add(search: Search): void {
    const { organizationId } = search.request;
    if (this.#locked.has(organizationId)) this.#locked.add(organizationId, search);
    else this.#batches.add(search);
  }

  /** Resolves once every search is decided or rejected. */
  async idle(): Promise<void> {
    await this.#batches.idle();
    await this.#locked.idle();
  }

  async #decideAll(batch: Search[]): Promise<void> {
    let open = batch;
    const mayRetry = (error: unknown) => {
      this.#countFailure(error);
      if (!isTransient(error) || isLockTimeout(error)) return false;
      open = rejectExpired(open, error);
      return open.length > 0;
    };
    try {
      await retryWhile({ pauseMs: retryPauseMs, mayRetry }, () => this.#decide(open));
    } catch (error) {
      if (isLockTimeout(error)) await this.#decideUnlocked(rejectExpired(open, error));
      else if (!isTransient(error)) await this.#decideEach(open, error);
    }
  }

  async #decide(open: Search[]): Promise<void> {
    const { database, metrics, onDecided } = this.#parts;
    const stop = metrics.settlementBatch.startTimer();
    const decisions = await decideSettlements(
      database,
      open.map(({ request }) => request),
    );
    stop();
    const decided = open.flatMap((search) => {
      const decision = decisions.get(search.request.requestId);
      if (decision) return { search, decision };
      search.reject(new UnknownOrganization(`the organization of ${search.request.requestId} does not exist`));
      return [];
    });
    await onDecided(decided);
  }

  /** Decides a batch that met a lock without the organizations that are locked. They wait by themselves. */
  async #decideUnlocked(open: Search[]): Promise<void> {
    const ids = new Set(open.map(({ request }) => request.organizationId));
    // If none is, it was the row of a token or a key: then each organization goes on by itself.
    const found = await findLocked(this.#parts.database, [...ids]).catch(() => ids);
    const locked = found.size > 0 ? found : ids;
    for (const search of open) {
      const { organizationId } = search.request;
      if (locked.has(organizationId)) this.#locked.add(organizationId, search);
    }
    const unlocked = open.filter(({ request }) => !locked.has(request.organizationId));
    if (unlocked.length > 0) await this.#decideAll(unlocked);
  }

  /** Tries the searches of an organization that was locked. @returns those to try again. */
  async #attempt(batch: Search[]): Promise<Search[]> {
    const open = rejectExpired(batch, new Error("timeout: the organization stayed locked"));
    try {
      if (open.length > 0) await this.#decide(open);
      return [];
    } catch (error) {
      this.#countFailure(error);
      if (isTransient(error)) return rejectExpired(open, error);
      await this.#decideEach(open, error);
      return [];
    }
  }

  /** Postgres refuses a batch. Alone, each search shows whether it is the cause, and the others are decided. */
  async #decideEach(open: Search[], error: unknown): Promise<void> {
    if (open.length > 1) await Promise.all(open.map((search) => this.#decideAll([search])));
    else for (const search of open) search.reject(error);
  }

  #countFailure(error: unknown): void {
    this.#parts.metrics.settlementRetries.inc();
    this.#parts.warn(error);
  }
}

/** Rejects the searches whose time for retries is over, and returns the rest. */
function rejectExpired<Search extends Undecided>(open: Search[], error: unknown): Search[] {
  const now = performance.now();
  return open.filter((search) => {
    if (now < search.giveUpAtMs) return true;
    search.reject(error);
    return false;
  });
}

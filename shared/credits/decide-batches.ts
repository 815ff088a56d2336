import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { valuesOf } from "../database/row.ts";
import { Batcher } from "../concurrency/batcher.ts";
import { retryWhile } from "../concurrency/retry.ts";
import { Semaphore } from "../concurrency/semaphore.ts";
import type { Database } from "../database/pool.ts";
import { isLockTimeout, isTransient } from "../database/transient-errors.ts";
import type { Metrics } from "../metrics.ts";
import { decideSettlements, type Decision, type SettlementRequest } from "./ledger.ts";

const batchSizeMax = 256;
const batchConcurrency = 2;
const retryPauseMs = 50;
/** Longer than a statement takes that gets no answer. */
const triedAgainWithinMs = 10_000;
/** Each attempt keeps a connection while it waits for a lock: the others are for organizations that are not locked. */
const lockedAttemptsAtOnce = 2;

/** Postgres does not have the organization of a search, so the search has no decision. */
export class UnknownOrganization extends Error {}

interface Undecided {
  request: SettlementRequest;
  /** Until when to try, as a time of `performance.now()`. */
  giveUpAtMs: number;
  resolve: (decision: Decision) => void;
  reject: (error: unknown) => void;
}

interface Parts {
  database: Database;
  metrics: Pick<Metrics, "settlementRetries" | "settlementBatch">;
  warn: (error: unknown) => void;
}

/**
 * Has Postgres decide searches, in batches of all that are ready, and retries while Postgres is unreachable. A search is rejected
 * if Postgres refuses it or its time is over. Searches of a locked organization wait apart from all others.
 */
export class DecidedBatches {
  readonly #parts: Parts;
  readonly #batches: Batcher<Undecided>;
  readonly #locked: LockedOrganizations<Undecided>;
  /** The last time that Postgres refused what is tried again, and the first one since it last decided a batch. */
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #failingSinceMs = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    const run = (batch: Undecided[]) => this.#decideAll(batch);
    this.#batches = new Batcher({ sizeMax: batchSizeMax, concurrency: batchConcurrency, run });
    this.#locked = new LockedOrganizations((batch) => this.#attempt(batch));
  }

  /** @throws what `Settlement.decide` throws. */
  decide(request: SettlementRequest, giveUpAtMs: number): Promise<Decision> {
    const { organizationId } = request;
    return new Promise((resolve, reject) => {
      const search = { request, giveUpAtMs, resolve, reject };
      if (this.#locked.has(organizationId)) this.#locked.add(organizationId, search);
      else this.#batches.add(search);
    });
  }

  /** For how long Postgres has decided no batch, while some are tried again; 0 if none is. Locks of others do not count. */
  get failingForMs(): number {
    const nowMs = performance.now();
    return nowMs - this.#failedAtMs < triedAgainWithinMs ? nowMs - this.#failingSinceMs : 0;
  }

  /** Resolves once every search is decided or rejected. */
  async idle(): Promise<void> {
    await this.#batches.idle();
    await this.#locked.idle();
  }

  async #decideAll(batch: Undecided[]): Promise<void> {
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

  async #decide(open: Undecided[]): Promise<void> {
    const { database, metrics } = this.#parts;
    const stop = metrics.settlementBatch.startTimer();
    const requests = open.map(({ request }) => request);
    // A call that fails counts too: while Postgres is slow, those that time out are the slowest.
    const decisions = await decideSettlements(database, requests).finally(() => stop());
    this.#failedAtMs = Number.NEGATIVE_INFINITY;
    for (const { request, resolve, reject } of open) {
      const decision = decisions.get(request.requestId);
      if (decision) resolve(decision);
      else reject(new UnknownOrganization(`the organization of ${request.requestId} does not exist`));
    }
  }

  /** Decides a batch that met a lock without the organizations that are locked. They wait by themselves. */
  async #decideUnlocked(open: Undecided[]): Promise<void> {
    const ids = new Set(open.map(({ request }) => request.organizationId));
    // If none is locked, it was the row of a token or a key. Then each organization continues alone.
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
  async #attempt(batch: Undecided[]): Promise<Undecided[]> {
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
  async #decideEach(open: Undecided[], error: unknown): Promise<void> {
    if (open.length > 1) await Promise.all(open.map((search) => this.#decideAll([search])));
    else for (const search of open) search.reject(error);
  }

  #countFailure(error: unknown): void {
    this.#parts.metrics.settlementRetries.inc();
    this.#parts.warn(error);
    if (!isTransient(error) || isLockTimeout(error)) return;
    const nowMs = performance.now();
    if (nowMs - this.#failedAtMs >= triedAgainWithinMs) this.#failingSinceMs = nowMs;
    this.#failedAtMs = nowMs;
  }
}

/** Rejects the searches whose time for retries is over, and returns the rest. */
function rejectExpired(open: Undecided[], error: unknown): Undecided[] {
  const now = performance.now();
  return open.filter((search) => {
    if (now < search.giveUpAtMs) return true;
    search.reject(error);
    return false;
  });
}

/**
 * Work for organizations whose rows another transaction has locked. Each organization waits here alone, one attempt after
 * the other, and holds up no other organization.
 */
class LockedOrganizations<Item> {
  /** By organization; without those whose last attempt succeeded, although items may wait that came before it did. */
  readonly #locked = new Map<string, Batcher<Item>>();
  readonly #waiting = new Set<Batcher<Item>>();
  readonly #semaphore = new Semaphore(lockedAttemptsAtOnce);
  readonly #attempt: (items: Item[]) => Promise<Item[]>;

  /** @param attempt tries at most `batchSizeMax` items of one organization, and returns those to try again. Never rejects. */
  constructor(attempt: (items: Item[]) => Promise<Item[]>) {
    this.#attempt = attempt;
  }

  /** Whether the last attempt of this organization failed, or waits: then more of its work has to wait here. */
  has(organizationId: string): boolean {
    return this.#locked.has(organizationId);
  }

  add(organizationId: string, item: Item): void {
    const known = this.#locked.get(organizationId);
    if (known) return known.add(item);
    const own: Batcher<Item> = new Batcher({
      sizeMax: batchSizeMax,
      concurrency: 1,
      run: async (items) => {
        const again = await this.#semaphore.run(() => this.#attempt(items));
        if (again.length === 0) this.#locked.delete(organizationId);
        else await sleep(retryPauseMs);
        for (const one of again) own.add(one);
      },
    });
    own.add(item);
    this.#locked.set(organizationId, own);
    this.#waiting.add(own);
    void own.idle().then(() => this.#waiting.delete(own));
  }

  /** Resolves once all have been decided. */
  async idle(): Promise<void> {
    await Promise.all([...this.#waiting].map((own) => own.idle()));
  }
}

/** Those of these organizations whose rows another transaction has locked at this moment. */
async function findLocked(database: Database, organizationIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await database.query(
    "select id from organizations where id = any($1) order by id for no key update skip locked",
    [organizationIds],
  );
  const free = new Set(valuesOf(z.string(), rows));
  return new Set(organizationIds.filter((id) => !free.has(id)));
}

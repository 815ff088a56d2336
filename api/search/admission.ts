import type { Redis } from "ioredis";
import { waitFor } from "../../shared/concurrency/with-timeout.ts";
import { type Admission, admit } from "../../shared/credits/holds.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import { readBalance } from "../../shared/credits/ledger.ts";
import { readPaidKey } from "../../shared/credits/paid-keys.ts";
import type { VersionedBalance } from "../../shared/credits/versioned-balance.ts";
import type { Database } from "../../shared/database/pool.ts";
import { CallerError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { parseFailure } from "../../shared/queue/replies.ts";
import { CallerDisconnected, RateLimited, unavailable } from "../errors.ts";
import { CreditCheck } from "./credit-check.ts";
import type { IdempotencyWaiters } from "./idempotency-waiters.ts";
import type { SearchRequest } from "./search-request.ts";
import type { Shedding } from "./shedding.ts";

/**
 * Admission of a search: the plan check in memory, then one atomic step in Redis (admit.lua), whose outcome decides:
 *
 *   held         a hold is placed; the search goes on
 *   replayed     the Idempotency-Key has an answer; return it
 *   waiting      the key's first request still runs; share its answer or error, or try again if it left neither
 *   cold         Redis has no balance; copy it from Postgres and try again
 *   short        what Redis has is too low; ask Postgres, since Redis may have missed a top-up, a payment under the key, or
 *                the end of a search, and try again if it did; otherwise 402
 *   closed       shedding refuses new searches: 503 (only replays and waiting repeats pass)
 *   key_reused   400      limited, crowded, abandoned   429
 *
 * Postgres is read for `cold` and `short` only.
 */

export type Held = Extract<Admission, { outcome: "held" }> & { priceMils: number };
export type Replayed = Extract<Admission, { outcome: "replayed" }>;
type Short = Extract<Admission, { outcome: "short" }>;

/** Redis did not answer the admission; whether it placed a hold may be unknown. */
export class AdmissionFailed extends Error {
  constructor(cause: unknown) {
    super("admission failed", { cause });
  }
}

export interface AdmissionParts {
  redis: Redis;
  database: Database;
  shedding: Shedding;
  waiters: IdempotencyWaiters;
  metrics: Metrics;
  log: Log;
  /** Where a caller without credit is sent. */
  topupUrl: string;
}

export class AdmissionControl {
  readonly #parts: AdmissionParts;
  readonly #credit: CreditCheck;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    this.#credit = new CreditCheck(parts);
  }

  /**
   * Admits a search, or returns the answer that its Idempotency-Key already has.
   * @throws {CallerError} the first refusal, in the order of the contract.
   * @throws {CallerDisconnected} if the caller disconnected while it waited for the key's first request.
   * @throws {AdmissionFailed}
   */
  async admit(request: SearchRequest): Promise<Held | Replayed> {
    const { caller, deadline } = request;
    requirePlan(request);
    let { priceMils } = caller.plan;
    for (;;) {
      const refusal = this.#parts.shedding.refusal(deadline.remainingMs());
      const admission = await this.#askRedis(request, priceMils, refusal !== undefined);
      switch (admission.outcome) {
        case "held":
          this.#parts.shedding.countAdmitted();
          return { ...admission, priceMils };
        case "replayed":
          return admission;
        case "closed":
          throw refusal ?? unavailable("shutting_down");
        case "key_reused":
          throw keyReused();
        case "limited":
          throw new RateLimited("window", caller.plan, admission.window);
        case "crowded":
          throw new RateLimited("concurrency", caller.plan, admission.window);
        case "abandoned":
          throw new RateLimited("abandoned", caller.plan, admission.window, admission.retryAfterMs);
        case "cold":
          await this.#copyBalance(request);
          break;
        case "short":
          priceMils = await this.#reconsider(request, priceMils, admission);
          break;
        case "waiting": {
          const answer = await this.#awaitFirst(request);
          if (answer) return { ...admission, outcome: "replayed", ...answer };
        }
      }
    }
  }

  async #askRedis(request: SearchRequest, priceMils: number, closed: boolean): Promise<Admission> {
    const { redis, metrics, log } = this.#parts;
    const { requestId, caller, key, deadline } = request;
    const budgetMs = deadline.remainingMs();
    if (budgetMs <= 0) throw deadline.error();
    const { organizationId, plan } = caller;
    try {
      const step = admit(redis, { organizationId, requestId, priceMils, budgetMs, plan, key, closed });
      const admission = await deadline.limit(step);
      metrics.admissions.inc({ outcome: admission.outcome });
      return admission;
    } catch (error) {
      metrics.admissions.inc({ outcome: "unknown" });
      log.warn({ err: error, requestId }, "admission failed");
      throw new AdmissionFailed(error);
    }
  }

  async #copyBalance(request: SearchRequest): Promise<void> {
    const { organizationId } = request.caller;
    const balance = await fromPostgres(request, readBalance(this.#parts.database, organizationId));
    if (!balance) throw new Error(`the organization ${organizationId} has disappeared`);
    await this.#storeBalance(request, balance);
  }

  /**
   * Checks with Postgres before a search is refused for credits.
   * @returns the price to try again with: 0 if the key has already paid.
   * @throws {CallerError} `out_of_credits`
   */
  async #reconsider(request: SearchRequest, priceMils: number, short: Short): Promise<number> {
    const { caller, key } = request;
    const { organizationId } = caller;
    if (key) {
      const paid = await fromPostgres(request, readPaidKey(this.#parts.database, organizationId, key.hash));
      if (paid === key.fingerprint) return 0;
      if (paid !== undefined) throw keyReused();
    }
    const correction = this.#credit.correct(organizationId, short);
    if (await fromPostgres(request, correction)) return priceMils;
    const { availableMils, heldMils } = short;
    const topup = { action: "topup", topupUrl: this.#parts.topupUrl };
    throw new CallerError("out_of_credits", { priceMils, availableMils, heldMils, ...topup });
  }

  async #storeBalance({ caller, deadline }: SearchRequest, balance: VersionedBalance): Promise<void> {
    await deadline.limit(storeBalance(this.#parts.redis, caller.organizationId, balance)).catch(() => {
      throw unavailable("redis_unreachable");
    });
  }

  /**
   * Waits for the key's first request. @returns its answer, or undefined if it ended without one: then try again.
   * @throws {CallerError} the first request's error.
   */
  async #awaitFirst(request: SearchRequest): Promise<{ requestId: string; body: Buffer } | undefined> {
    const { caller, key, deadline, disconnected: signal } = request;
    if (!key) throw new Error("only a search with a key can wait for another");
    const timeoutMs = deadline.remainingMs();
    const ended = this.#parts.waiters
      .ended(caller.organizationId, key.hash, performance.now() + timeoutMs)
      .catch(() => {
        throw unavailable("redis_unreachable");
      });
    const wait = await waitFor(ended, { timeoutMs, signal });
    if (wait.ended === "timed_out") throw deadline.error();
    if (wait.ended !== "done") throw new CallerDisconnected();
    const state = wait.value;
    if (state.outcome === "answered") return { requestId: state.requestId, body: state.body };
    if (state.outcome === "failed") {
      const { code, details } = parseFailure(state.failure);
      throw new CallerError(code, details);
    }
    return undefined;
  }
}

function requirePlan({ caller }: SearchRequest): void {
  const plan = caller.plan.code;
  if (caller.suspended)
    throw new CallerError("plan_required", { plan, action: "contact_operator", reason: "suspended" });
  if (!caller.plan.operations.includes("serp.search"))
    throw new CallerError("plan_required", { plan, action: "upgrade" });
}

function fromPostgres<T>({ deadline }: SearchRequest, step: Promise<T>): Promise<T> {
  return deadline.limit(step).catch((error: unknown) => {
    throw error instanceof CallerError ? error : unavailable("postgres_unreachable");
  });
}

const keyReused = () => new CallerError("bad_request", { reason: "idempotency_key_reused" });

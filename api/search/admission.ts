import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../shared/process/context.ts";
import { waitFor } from "../../shared/concurrency/wait-for.ts";
import { type Admission, type AdmissionRequest, admit, type RateWindow } from "../../shared/credits/admit.ts";
import type { StoredAnswer } from "../../shared/credits/stored-answers.ts";
import { searchPriceMils } from "../../shared/credits/plans.ts";
import { CallerError } from "../../shared/errors.ts";
import { parseFailure } from "../../shared/queue/replies.ts";
import { orPostgresUnavailable, orRedisUnavailable } from "../datastore-unavailable.ts";
import { CallerDisconnected, RateLimited, unavailable } from "../errors.ts";
import { CreditCheck, type CreditCheckParts, type CreditRefusal } from "./credit-check.ts";
import { IdempotencyWaiters, type PaidAnswers } from "./idempotency.ts";
import type { SearchRequest } from "./search-request.ts";
import type { Shedding } from "./shedding.ts";

/**
 * Admission of a search: it checks the plan in memory; with an Idempotency-Key it asks Postgres whether the key has paid; then
 * it takes one atomic step in Redis (admit.lua), whose outcome decides:
 *
 *   held                 a hold is placed; the search goes on
 *   stored_answer        the key has paid, and Postgres has the answer; return it
 *   waiting              the key's first request still runs; share its answer or error, or try again if it left neither
 *   completed            the key's first request was answered after that; ask Postgres again
 *   balance_missing      Redis has no balance; copy it from Postgres and try again
 *   insufficient_credit  the balance in Redis is too low. It may lack a top-up, the end of a search, or the record of a key
 *                        that has paid: ask Postgres, and try again if it did; otherwise 402
 *   spending_limit       a limit of the organization or the token would be exceeded; ask Postgres likewise; otherwise 402
 *   shed                 no worker supports the query: 400; or shedding refuses further searches of the organization: 503.
 *                        Only replays and waiting repeats pass
 *   key_reused           400
 *   limited, concurrency_limited, unpaid_calls   429
 *
 * Without a key, only `balance_missing`, `insufficient_credit` and `spending_limit` read Postgres.
 */

// Before Postgres is asked for an answer that it did not have although Redis said so.
const lookAgainAfterMs = 10;

export type Held = Extract<Admission, { outcome: "held" }> & {
  priceMils: number;
  turn: number;
  /** Whether it waited for the first request under its key until most of its time had passed. */
  hadLittleTime: boolean;
};
/** The answer that the key of a search has paid for. */
export type Replayed = { outcome: "replayed"; window: RateWindow } & StoredAnswer;

/** Redis did not answer the admission; whether it placed a hold may be unknown. */
export class AdmissionFailed extends Error {
  constructor(cause: unknown) {
    super("admission failed", { cause });
  }
}

interface Parts extends CreditCheckParts, Pick<Context, "metrics" | "log"> {
  shedding: Shedding;
  paidAnswers: PaidAnswers;
}

export class AdmissionControl {
  readonly #parts: Parts;
  readonly #credit: CreditCheck;
  readonly #waiters: IdempotencyWaiters;
  readonly #inFlight = new InFlightSearches();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#credit = new CreditCheck(parts);
    this.#waiters = new IdempotencyWaiters(parts.redis);
  }

  /**
   * Admits a search, or returns the answer that its Idempotency-Key already has.
   * @throws {CallerError} the first refusal, in the order of the contract.
   * @throws {CallerDisconnected} if the caller disconnected while it waited for the key's first request.
   * @throws {AdmissionFailed}
   */
  async admit(request: SearchRequest): Promise<Held | Replayed> {
    requirePlan(request);
    try {
      return await this.#admit(request);
    } catch (error) {
      if (request.key && error instanceof CallerError)
        this.#parts.paidAnswers.noteRefusal(request.caller.organizationId);
      throw error;
    }
  }

  async #admit(request: SearchRequest): Promise<Held | Replayed> {
    const { shedding } = this.#parts;
    const { caller, query, deadline } = request;
    const priceMils = searchPriceMils(caller.plan, query);
    let paid = await this.#findPaid(request);
    let hasWaited = false;
    for (;;) {
      const refusal = shedding.unsupported(query) ?? shedding.refusal(deadline.remainingMs());
      const state = { priceMils, openMax: refusal?.openMax, hasStoredAnswer: paid !== undefined };
      const admission = await this.#askRedis(request, state);
      switch (admission.outcome) {
        case "held":
          shedding.countAdmitted();
          return {
            ...admission,
            priceMils,
            turn: shedding.turnOf(admission),
            hadLittleTime: hasWaited && deadline.remainingMs() < deadline.timeoutMs / 2,
          };
        case "shed":
          throw refusal?.error ?? unavailable("shutting_down");
        case "key_reused":
          throw keyReused();
        case "limited":
          throw RateLimited.byPlan("window", caller.plan, admission.window);
        case "concurrency_limited":
          throw RateLimited.byPlan("concurrency", caller.plan, admission.window);
        case "unpaid_calls":
          throw RateLimited.byPlan("unpaid_calls", caller.plan, admission.window, admission.retryAfterMs);
        case "balance_missing":
          await fromPostgres(request, this.#credit.copy(caller, admission.version));
          break;
        case "insufficient_credit":
        case "spending_limit":
          paid = await this.#recheckPostgres(request, priceMils, admission);
          break;
        case "stored_answer":
          if (paid) return { ...paid, outcome: "replayed", window: admission.window };
          break;
        case "completed":
          await sleep(lookAgainAfterMs);
          paid = await this.#findPaid(request);
          break;
        case "waiting":
          await this.#awaitFirst(request);
          paid = await this.#findPaid(request);
          hasWaited = true;
      }
    }
  }

  /**
   * Finds the answer that the key has paid for.
   * @throws {CallerError} `bad_request` if that is the answer to another query, `unavailable` without Postgres.
   */
  async #findPaid(request: SearchRequest): Promise<StoredAnswer | undefined> {
    const { key, caller } = request;
    if (!key) return undefined;
    const owned = { organizationId: caller.organizationId, hash: key.hash };
    const paid = await fromPostgres(request, this.#parts.paidAnswers.findKey(owned));
    if (!paid) return undefined;
    if (paid.fingerprint !== key.fingerprint) throw keyReused();
    return fromPostgres(request, this.#parts.paidAnswers.findAnswer(owned));
  }

  async #askRedis(
    request: SearchRequest,
    state: Pick<AdmissionRequest, "priceMils" | "openMax" | "hasStoredAnswer">,
  ): Promise<Admission> {
    const { redis, metrics, log } = this.#parts;
    const { requestId, caller, key, deadline } = request;
    const budgetMs = deadline.remainingMs();
    if (budgetMs <= 0) throw deadline.error();
    const atConcurrencyLimit = !this.#inFlight.add(request);
    try {
      const step = admit(redis, { ...caller, requestId, budgetMs, key, atConcurrencyLimit, ...state });
      const admission = await deadline.limit(step);
      metrics.admissions.inc({ outcome: admission.outcome });
      return admission;
    } catch (error) {
      metrics.admissions.inc({ outcome: "unknown" });
      log.warn({ err: error, requestId }, "admission failed");
      throw new AdmissionFailed(error);
    }
  }

  /**
   * Checks with Postgres before a search is refused for its price.
   * @returns the answer that the key has paid for meanwhile, with the last of the credit. @throws {CallerError} `out_of_credits`
   */
  async #recheckPostgres(
    request: SearchRequest,
    priceMils: number,
    refusal: CreditRefusal,
  ): Promise<StoredAnswer | undefined> {
    const { caller } = request;
    const credit = await fromPostgres(request, this.#credit.correct(caller, refusal));
    if (credit === "outdated") return undefined;
    const paid = await this.#findPaid(request);
    if (paid) return paid;
    throw this.#credit.error(caller, priceMils, refusal, credit);
  }

  /** Waits until the key's first request has ended, or left no record. @throws {CallerError} the first request's error. */
  async #awaitFirst(request: SearchRequest): Promise<void> {
    const { caller, key, deadline, disconnected: signal } = request;
    if (!key) throw new Error("only a search with a key can wait for another");
    const timeoutMs = deadline.remainingMs();
    const ending = this.#waiters.ended(caller.organizationId, key.hash, performance.now() + timeoutMs);
    const ended = orRedisUnavailable(ending);
    const wait = await waitFor(ended, { timeoutMs, signal });
    if (wait.ended === "timed_out") throw deadline.error();
    if (wait.ended !== "done") throw new CallerDisconnected();
    if (wait.value.outcome !== "failed") return;
    const { code, details } = parseFailure(wait.value.failure);
    throw new CallerError(code, details);
  }
}

/**
 * Checks that the plan of the caller includes the search. Nothing is held or counted yet.
 * @throws {CallerError} `plan_required` with what would help.
 */
function requirePlan({ caller, query }: SearchRequest): void {
  const { code: plan, maxDepth } = caller.plan;
  if (caller.suspended)
    throw new CallerError("plan_required", { plan, action: "contact_operator", reason: "suspended" });
  if (!caller.plan.operations.includes("serp.search"))
    throw new CallerError("plan_required", { plan, action: "upgrade" });
  if (maxDepth !== undefined && query.depth > maxDepth)
    throw new CallerError("plan_required", { plan, action: "upgrade", reason: "max_depth", maxDepth });
}

/** A step that needs Postgres, for as long as the search has time. */
const fromPostgres = <T>({ deadline }: SearchRequest, step: Promise<T>) => orPostgresUnavailable(deadline.limit(step));

const keyReused = () => new CallerError("bad_request", { reason: "idempotency_key_reused" });

/**
 * The searches without an Idempotency-Key that this process has of each organization, from admission until the answer is taken
 * or lost. In Redis a search frees its concurrency slot once it is decided. Without this count, a caller that takes its answers
 * slowly could run more searches than its plan allows at once, and then disconnect from all of them.
 */
export class InFlightSearches {
  readonly #requestIds = new Map<string, Set<string>>();

  /**
   * Counts a search until it has ended, unless it is counted already.
   * @returns false if as many of its organization are in flight as the plan allows.
   */
  add({ caller: { organizationId, plan }, requestId, key, ended }: SearchRequest): boolean {
    if (key) return true;
    const own = this.#requestIds.get(organizationId) ?? new Set();
    if (own.has(requestId)) return true;
    if (own.size >= plan.concurrency) return false;
    this.#requestIds.set(organizationId, own.add(requestId));
    void ended.then(() => {
      own.delete(requestId);
      if (own.size === 0) this.#requestIds.delete(organizationId);
    });
    return true;
  }
}

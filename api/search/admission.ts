import { LRUCache } from "lru-cache";
import { parseFailure } from "../../shared/queue/replies.ts";
import { type Admission, admit, type IdempotencyState, storeBalance } from "../../shared/credits/holds.ts";
import type { IdempotencyKey } from "../../shared/credits/idempotency-key.ts";
import { readPaidKey, readBalance } from "../../shared/credits/ledger.ts";
import type { VersionedBalance } from "../../shared/credits/versioned-balance.ts";
import { CallerError } from "../../shared/errors.ts";
import type { ApiContext } from "../context.ts";
import { CallerDisconnected, RateLimited, unavailable } from "../errors.ts";
import { withinDeadline, remainingMs, type SearchRequest } from "./search-request.ts";

/**
 * The gate of a search: plan, then everything else in one atomic step in Redis. What Redis cannot know alone is asked of
 * Postgres, and only then: a balance that Redis has no copy of, and a balance that is too low, because a top-up may have
 * been lost on its way or the key may have paid already.
 */

// A refused organization that hammers on costs one look at Postgres in this time, per process.
const shortAskedEveryMs = 250;
const shortAskedMax = 10_000;

export type Admitted =
  | (Extract<Admission, { outcome: "held" }> & { priceMils: number })
  | Extract<Admission, { outcome: "replayed" }>;

/** @throws {CallerError} the first refusal, in the contract's order; {@link CallerDisconnected} when nobody waits any more. */
export type Admit = (call: SearchRequest, key: IdempotencyKey | undefined) => Promise<Admitted>;

export function openAdmission(context: ApiContext): Admit {
  const balances = new LRUCache<string, { balance: VersionedBalance | undefined }>({
    max: shortAskedMax,
    ttl: shortAskedEveryMs,
    fetchMethod: async (organizationId) => ({ balance: await readBalance(context.database, organizationId) }),
  });

  return async (call, key) => {
    requirePlan(call);
    const { organizationId } = call.caller;
    let priceMils = call.caller.plan.priceMils;
    for (;;) {
      const refusal = context.shedding.refusal(remainingMs(context, call));
      const admission = await askRedis(context, call, key, priceMils, refusal !== undefined);
      switch (admission.outcome) {
        case "held":
          context.shedding.countAdmitted();
          return { ...admission, priceMils };
        case "replayed":
          return admission;
        case "closed":
          throw refusal ?? unavailable("shutting_down");
        case "key_reused":
          throw keyReused();
        case "limited":
          throw new RateLimited("window", call.caller.plan, admission.window);
        case "crowded":
          throw new RateLimited("concurrency", call.caller.plan, admission.window);
        case "cold":
          await storeInRedis(
            context,
            call,
            await fromPostgres(context, call, readBalance(context.database, organizationId)),
          );
          break;
        case "short":
          priceMils = await reconsider(context, balances, call, key, priceMils, admission);
          break;
        case "waiting": {
          const shared = await awaitFirst(context, call, key);
          if (shared) return { ...admission, outcome: "replayed", ...shared };
        }
      }
    }
  };
}

function requirePlan({ caller }: SearchRequest): void {
  const plan = caller.plan.code;
  if (caller.suspended) throw new CallerError("plan_required", { plan, action: "upgrade", reason: "suspended" });
  if (!caller.plan.operations.includes("serp.search"))
    throw new CallerError("plan_required", { plan, action: "upgrade" });
}

async function askRedis(
  context: ApiContext,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  priceMils: number,
  closed: boolean,
): Promise<Admission> {
  const budgetMs = remainingMs(context, call);
  if (budgetMs <= 0) throw new CallerError("engine_timeout", { timeoutMs: context.config.SEARCH_DEADLINE_MS });
  const { organizationId, plan } = call.caller;
  const { requestId } = call;
  try {
    const request = { organizationId, requestId, priceMils, budgetMs, plan, key, closed };
    const admission = await withinDeadline(context, call, admit(context.redis, request));
    context.metrics.admissions.inc({ outcome: admission.outcome });
    return admission;
  } catch (error) {
    context.metrics.admissions.inc({ outcome: "unknown" });
    context.log.warn({ err: error, requestId }, "admission failed");
    throw new AdmissionFailed(error);
  }
}

/** Redis did not answer the admission; whether a hold was placed may be unknown. */
export class AdmissionFailed extends Error {
  constructor(cause: unknown) {
    super("admission failed", { cause });
  }
}

/**
 * Too little to spend, by Redis. Postgres is asked before the caller is refused.
 * @returns the price to try again with: 0 where the key has paid already.
 */
async function reconsider(
  context: ApiContext,
  balances: LRUCache<string, { balance: VersionedBalance | undefined }>,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  priceMils: number,
  short: Extract<Admission, { outcome: "short" }>,
): Promise<number> {
  const { organizationId } = call.caller;
  if (key) {
    const paid = await fromPostgres(context, call, readPaidKey(context.database, organizationId, key.hash));
    if (paid === key.fingerprint) return 0;
    if (paid !== undefined) throw keyReused();
  }
  const asked = await fromPostgres(context, call, balances.fetch(organizationId));
  if (asked?.balance && asked.balance.version > short.version) {
    await storeInRedis(context, call, asked.balance);
    return priceMils;
  }
  throw new CallerError("out_of_credits", {
    priceMils,
    availableMils: short.availableMils,
    heldMils: short.heldMils,
    action: "topup",
    topupUrl: context.config.TOPUP_URL,
  });
}

async function storeInRedis(
  context: ApiContext,
  call: SearchRequest,
  balance: VersionedBalance | undefined,
): Promise<void> {
  if (!balance) throw new Error(`the organization ${call.caller.organizationId} has disappeared`);
  await withinDeadline(context, call, storeBalance(context.redis, call.caller.organizationId, balance)).catch(() => {
    throw unavailable("redis_unreachable");
  });
}

/** Waits for the request that holds the key. @returns its answer, or nothing where the gate should be tried again. */
async function awaitFirst(context: ApiContext, call: SearchRequest, key: IdempotencyKey | undefined) {
  if (!key) throw new Error("only a search with a key can wait for another");
  const state = await firstEnd(context, call, key);
  if (state.outcome === "answered") return { requestId: state.requestId, body: state.body };
  if (state.outcome === "failed") {
    const { code, details } = parseFailure(state.failure);
    throw new CallerError(code, details);
  }
  return undefined;
}

async function firstEnd(context: ApiContext, call: SearchRequest, key: IdempotencyKey): Promise<IdempotencyState> {
  const leftMs = remainingMs(context, call);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const timeoutMs = context.config.SEARCH_DEADLINE_MS;
    timer = setTimeout(() => reject(new CallerError("engine_timeout", { timeoutMs })), Math.max(0, leftMs));
    call.disconnected.addEventListener("abort", () => reject(new CallerDisconnected()), { once: true });
  });
  const ended = context.keyWaits.ended(call.caller.organizationId, key.hash, performance.now() + leftMs).catch(() => {
    throw unavailable("redis_unreachable");
  });
  try {
    return await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}

function fromPostgres<T>(context: ApiContext, call: SearchRequest, asked: Promise<T>): Promise<T> {
  return withinDeadline(context, call, asked).catch(() => {
    throw unavailable("postgres_unreachable");
  });
}

const keyReused = () => new CallerError("bad_request", { reason: "idempotency_key_reused" });

import type { Context } from "../shared/context.ts";
import { type Decision, type SettlementRequest, isCharged } from "../shared/credits/ledger.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { isTransient } from "../shared/database/transient-errors.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { isSameOrSubdomain } from "../shared/query/domains.ts";
import { type SearchOutcome, type SearchTrace, serializeAnswer } from "../shared/queue/replies.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";
import type { Result } from "../shared/results.ts";
import type { AbandonedSearches } from "./abandoned-searches.ts";
import type { Engine, SourcedAnswer } from "./engine/single-flight.ts";
import type { EngineAnswer } from "./engine/engine-answer.ts";

/**
 * The worker's job: runs the search in the engine within the deadline, settles it and replies. A job may run twice, after
 * a crash or a lost lock. Postgres decides a search once, so the second run has no further effect. A search whose caller
 * hung up sends no further call and is refunded once the calls that were sent have ended: until then it keeps its place.
 */

export type RunningSearches = Pick<Context, "clock" | "config" | "log" | "metrics"> & {
  engine: Engine;
  settlement: Settlement;
  abandonedSearches: AbandonedSearches;
};

const notSearched = { provider: "none", calls: [], costMicroUsd: 0 };

export async function runSearchJob(context: RunningSearches, job: SearchJob, isRepeated: boolean): Promise<void> {
  const { clock, metrics, settlement, abandonedSearches } = context;
  const startedAtMs = clock.nowMs();
  const queueMs = Math.max(0, startedAtMs - job.enqueuedAtMs);
  metrics.queueWaitSeconds.observe(queueMs / 1_000);

  const abandoned = await abandonedSearches.begin(job, isRepeated);
  const leftMs = job.deadlineAtMs - startedAtMs - protocolTimes.settleMarginMs;
  const answer = await ask(context, job, { leftMs, abandoned }).finally(() => abandonedSearches.end(job));
  const runMs = clock.nowMs() - startedAtMs;
  metrics.searchSeconds.observe(runMs / 1_000);
  const trace: SearchTrace = { ...answer.trace, from: answer.from, queueMs: round(queueMs), runMs: round(runMs) };
  context.log.debug({ requestId: job.requestId, ...trace }, "search ran");
  countCalls(context, trace);

  try {
    await settlement.settle({
      request: settlementRequest(job, answer, abandoned.aborted),
      retryForMs: Math.max(0, job.deadlineAtMs - clock.nowMs()) + protocolTimes.sweepGraceMs,
      toOutcome: (decision) => conclude(context, job, answer, decision),
      reply: { inbox: job.inbox, trace },
      ifCharged: "end_hold",
    });
  } catch (error) {
    // Postgres was unreachable until after the deadline, and the API has answered 504.
    if (!isTransient(error)) throw error;
    context.log.warn({ err: error, requestId: job.requestId }, "the sweeper or the reconciler will end a search");
  }
}

async function ask(
  { engine }: RunningSearches,
  { query, enqueuedAtMs }: SearchJob,
  { leftMs, abandoned }: { leftMs: number; abandoned: AbortSignal },
): Promise<SourcedAnswer> {
  if (leftMs > 0) return engine.search({ query, remainingMs: leftMs, enqueuedAtMs, abandoned });
  return { ok: false, code: "engine_timeout", details: {}, trace: notSearched, from: "provider" };
}

function settlementRequest(job: SearchJob, answer: EngineAnswer, isAbandoned: boolean): SettlementRequest {
  const { requestId, organizationId, key, priceMils } = job;
  if (isAbandoned) return { requestId, organizationId, key, wanted: "refund", reason: "caller_gone" };
  if (answer.ok) return { requestId, organizationId, key, wanted: "charge", priceMils };
  const reason = answer.trace === notSearched ? "deadline_passed" : answer.code;
  return { requestId, organizationId, key, wanted: "refund", reason };
}

/** The answer or the error for the caller, once Postgres has decided who pays. */
function conclude(context: RunningSearches, job: SearchJob, answer: EngineAnswer, decision: Decision): SearchOutcome {
  const { timeoutMs } = job;
  if (!answer.ok) {
    const details = answer.code === "engine_timeout" ? { timeoutMs } : answer.details;
    return { kind: "failure", code: answer.code, details, charged: isCharged(decision) };
  }
  if (isCharged(decision)) return answered(job, answer, decision.chargedMils);
  switch (decision.reason) {
    case "already_paid":
      return answered(job, answer, 0);
    case "out_of_credits":
      return { kind: "failure", code: "out_of_credits", details: outOfCredits(context, job, decision) };
    case "idempotency_key_reused":
      return { kind: "failure", code: "bad_request", details: { reason: decision.reason } };
    default:
      // The API or the sweeper refunded the search before this run had its answer.
      return { kind: "failure", code: "engine_timeout", details: { timeoutMs } };
  }
}

function answered(job: SearchJob, answer: Extract<EngineAnswer, { ok: true }>, chargedMils: number): SearchOutcome {
  const body = serializeAnswer({
    requestId: job.requestId,
    query: job.query,
    creditsCharged: chargedMils,
    creditsRemaining: job.remainingMils + job.priceMils - chargedMils,
    totalResultsCount: answer.totalResultsCount,
    results: onTarget(answer.results, job.query.targetDomain),
  });
  return { kind: "answer", requestId: job.requestId, body, chargedMils };
}

/** The results on the target domain or its subdomains. They keep their ranks on the whole page. */
function onTarget(results: Result[], targetDomain: string | undefined): Result[] {
  return targetDomain === undefined ? results : results.filter(({ domain }) => isSameOrSubdomain(domain, targetDomain));
}

function outOfCredits({ config }: RunningSearches, { priceMils }: SearchJob, { balance }: Decision) {
  return {
    priceMils,
    availableMils: balance.balanceMils,
    heldMils: 0,
    action: "topup",
    topupUrl: config.TOPUP_URL,
  };
}

function countCalls({ metrics }: RunningSearches, { calls }: SearchTrace): void {
  for (const call of calls) {
    metrics.providerCalls.inc({ provider: call.provider, outcome: call.outcome });
    metrics.providerSeconds.observe({ provider: call.provider }, call.ms / 1_000);
    metrics.providerCostMicroUsd.inc({ provider: call.provider }, call.costMicroUsd);
  }
}

const round = (ms: number) => Math.round(ms * 10) / 10;

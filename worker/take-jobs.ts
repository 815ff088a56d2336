import { limitBehind, limitDetails, spentIn } from "../shared/credits/limits.ts";
import { type Decision, isCharged, type SettlementRequest } from "../shared/credits/ledger.ts";
import { compressAnswer } from "../shared/credits/stored-answers.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import type { SearchCalls } from "../shared/credits/unpaid-calls.ts";
import type { Context } from "../shared/process/context.ts";
import { isTransient } from "../shared/database/transient-errors.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { type PayableCalls, type SearchOutcome, type SearchTrace, serializeAnswer } from "../shared/queue/replies.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";
import type { SearchLog } from "../shared/search-log/search-log.ts";
import type { DisconnectedSearches } from "./disconnected-searches.ts";
import type { EngineAnswer } from "./engine/google-engine.ts";
import type { Engine, EngineSearch, SourcedAnswer } from "./engine/single-flight.ts";
import type { RawAnswers } from "./raw-answers/record-raw-answers.ts";
import { AverageRunTime } from "./concurrency-controller.ts";
import { JobLoop, WorkersLost } from "./job-loop.ts";
import { isSameOrSubdomain } from "../shared/query/domains.ts";
import type { Query } from "../shared/query/query.ts";
import type { Result, ResultType } from "../shared/results.ts";

/**
 * The worker's half of a search: take the job, search within the deadline, let Postgres decide who pays, and reply. A job may
 * run twice, after a crash or a lost lock. Postgres decides each search once, so the second run has no further effect. When a
 * caller disconnects, the search sends no further call. It keeps its concurrency slot until the calls already sent have ended,
 * and is then refunded.
 */

const failedRetryMs = 5_000;

type RunningSearches = Pick<Context, "clock" | "config" | "log" | "metrics"> & {
  workerId: string;
  engine: Engine;
  settlement: Settlement;
  disconnectedSearches: DisconnectedSearches;
  /** Absent unless raw answers are kept. */
  rawAnswers?: RawAnswers | undefined;
  /** Absent unless searches are logged. */
  searchLog?: SearchLog | undefined;
};

/** Takes searches from the queue until the process stops. @param slots how many at once at first. */
export async function takeJobs(
  context: Context & RunningSearches,
  slots: number,
): Promise<{ jobs: JobLoop; average: AverageRunTime }> {
  const average = new AverageRunTime();
  const run = async (job: SearchJob, isRepeated: boolean) => {
    const startedAtMs = performance.now();
    try {
      await runSearchJob(context, job, isRepeated);
    } finally {
      average.add(performance.now() - startedAtMs);
    }
  };
  const failed = async (error: Error, requestId: string | undefined, job: SearchJob | undefined) => {
    if (error instanceof WorkersLost) context.log.warn({ requestId }, "a search lost every worker that had it");
    else context.log.error({ err: error, requestId }, "unhandled error in a search");
    if (job) await refundFailed(context, job);
  };
  const jobs = new JobLoop(context, { run, failed }, { workerId: context.workerId, concurrency: slots });
  context.shutdown.register("jobs", () => jobs.stop());
  await jobs.start();
  return { jobs, average };
}

async function runSearchJob(context: RunningSearches, job: SearchJob, isRepeated: boolean): Promise<void> {
  const { clock, settlement, log } = context;
  const { ending, trace, payable, callerDisconnected } = await search(context, job, isRepeated);
  const body = job.key && ending.ok ? await compressAnswer(ending.body) : undefined;
  const truncated = ending.ok && ending.truncated && { truncated: true };
  const line = { requestId: job.requestId, outcome: outcomeOf(ending, callerDisconnected), ...truncated, ...trace };
  const request = settlementRequest(job, ending, { callerDisconnected, body });
  const retryForMs = Math.max(0, job.deadlineAtMs - clock.nowMs()) + protocolTimes.sweepGraceMs;
  try {
    const decision = await settlement.decide(request, retryForMs);
    const outcome = conclude(context, job, ending, decision);
    // Under a key a charge is never reversed.
    const reply = { inbox: job.inbox, trace, payable: job.key ? undefined : payable };
    const calls = payable && withBudget(job, payable);
    await settlement.publish({ request, decision, outcome, reply, calls, ifCharged: "end_hold" }, retryForMs);
    log.info({ ...line, decided: decision.kind, chargedMils: decision.chargedMils }, "search");
  } catch (error) {
    // Postgres was unreachable until after the deadline, and the API has answered 504.
    if (!isTransient(error)) throw error;
    log.warn({ err: error, ...line }, "the sweeper or the reconciler will end a search");
  }
  logSearch(context, job, trace);
}

/**
 * How the engine ended a search: the body to send if the search is charged, or the error. The body is serialized before the
 * decision, so that the results can be collected while the search waits for it.
 */
type Ending =
  | { ok: true; body: Buffer; truncated: boolean }
  | (Failed & { reason: Failed["code"] | "deadline_passed" });
type Failed = Pick<Extract<EngineAnswer, { ok: false }>, "ok" | "code" | "details">;

function withBudget(
  { tokenId, key, unpaidCallsPerHour: callsPerHour, hadLittleTime }: SearchJob,
  payable: PayableCalls,
): SearchCalls {
  return { ...payable, tokenId, callsPerHour, isKeyed: key !== undefined, hadLittleTime };
}

const outcomeOf = (ending: Ending, callerDisconnected: boolean) =>
  callerDisconnected ? "disconnected" : ending.ok ? "answered" : ending.code;

async function search(
  context: RunningSearches,
  job: SearchJob,
  isRepeated: boolean,
): Promise<{ ending: Ending; trace: SearchTrace; payable: PayableCalls | undefined; callerDisconnected: boolean }> {
  const { clock, metrics, disconnectedSearches } = context;
  const startedAtMs = clock.nowMs();
  const queueMs = Math.max(0, startedAtMs - job.enqueuedAtMs);
  metrics.queueWaitSeconds.observe(queueMs / 1_000);

  const disconnected = await disconnectedSearches.begin(job, isRepeated);
  const leftMs = job.deadlineAtMs - startedAtMs - protocolTimes.settleMarginMs;
  const recorder = context.rawAnswers?.recorderFor(job.requestId);
  const answer = await ask(context, job, { leftMs, disconnected, recorder }).finally(() =>
    disconnectedSearches.end(job),
  );
  const { calls, callsOf = null } = answer.trace;
  if (calls.length === 0) recorder?.recordNoCall({ from: answer.from, callsOf });
  const runMs = clock.nowMs() - startedAtMs;
  metrics.searchSeconds.observe(runMs / 1_000);
  const times = { queueMs: round(queueMs), runMs: round(runMs) };
  const trace: SearchTrace = { worker: context.workerId, ...answer.trace, from: answer.from, ...times };
  countCalls(context, trace);
  return { ending: endingOf(job, answer), trace, payable: answer.payable, callerDisconnected: disconnected.aborted };
}

function endingOf(job: SearchJob, answer: EngineAnswer): Ending {
  if (answer.ok) return { ok: true, body: writeAnswerBody(job, answer), truncated: answer.truncated === true };
  const { code, details, trace } = answer;
  return { ok: false, code, details, reason: trace === notSearched ? "deadline_passed" : code };
}

async function ask(
  { engine }: RunningSearches,
  { query, enqueuedAtMs, organizationId, openSearches }: SearchJob,
  { leftMs, ...options }: { leftMs: number } & Pick<EngineSearch, "disconnected" | "recorder">,
): Promise<SourcedAnswer> {
  const claim = { organizationId, openSearches };
  if (leftMs > 0) return engine.search({ query, remainingMs: leftMs, enqueuedAtMs, claim, ...options });
  return { ok: false, code: "engine_timeout", details: {}, trace: notSearched, from: "provider" };
}

/** Nothing is charged if the caller has disconnected. @param given.body the answer for the key, compressed. */
function settlementRequest(
  job: SearchJob,
  ending: Ending,
  { callerDisconnected, body }: { callerDisconnected: boolean; body: Buffer | undefined },
): SettlementRequest {
  const { requestId, organizationId, tokenId, key, priceMils, limits } = job;
  const settled = { requestId, organizationId, tokenId, key };
  if (callerDisconnected) return { ...settled, wanted: "refund", reason: "caller_disconnected" };
  if (ending.ok) return { ...settled, wanted: "charge", priceMils, limits, answer: body };
  return { ...settled, wanted: "refund", reason: ending.reason };
}

/**
 * The answer or the error for the caller, once Postgres has decided who pays. Under a key Postgres also decides the bytes:
 * what an earlier run or another request has stored goes to the caller, and this run's answer is dropped.
 */
function conclude(context: RunningSearches, job: SearchJob, ending: Ending, decision: Decision): SearchOutcome {
  const { timeoutMs } = job;
  const { stored, chargedMils } = decision;
  if (!ending.ok) {
    const details = ending.code === "engine_timeout" ? { timeoutMs } : ending.details;
    return { kind: "failure", code: ending.code, details, charged: isCharged(decision) };
  }
  if (stored) return { kind: "answer", ...stored, chargedMils };
  if (isCharged(decision)) return { kind: "answer", requestId: job.requestId, body: ending.body, chargedMils };
  switch (decision.reason) {
    case "out_of_credits":
    case "daily_limit":
    case "monthly_limit":
    case "token_daily_limit":
    case "token_monthly_limit":
      return { kind: "failure", code: "out_of_credits", details: outOfCredits(context, job, decision) };
    case "idempotency_key_reused":
      return { kind: "failure", code: "bad_request", details: { reason: decision.reason } };
    default:
      // The API or the sweeper refunded the search before this run had its answer.
      return { kind: "failure", code: "engine_timeout", details: { timeoutMs } };
  }
}

function outOfCredits({ config, clock }: RunningSearches, job: SearchJob, { reason, balance, token }: Decision) {
  const { priceMils, limits } = job;
  const topupUrl = config.TOPUP_URL;
  const limit = limitBehind(reason);
  const spending = limit?.scope === "token" ? token?.spending : balance.spending;
  if (limit && spending) {
    const spentMils = spentIn(limit.period, spending);
    return limitDetails(limits, limit, { priceMils, spentMils, heldMils: 0, topupUrl, nowMs: clock.nowMs() });
  }
  return { priceMils, availableMils: balance.balanceMils, heldMils: 0, action: "topup", topupUrl };
}

function countCalls({ metrics }: RunningSearches, { calls }: SearchTrace): void {
  for (const call of calls) {
    metrics.providerCalls.inc({ provider: call.provider, outcome: call.outcome });
    metrics.providerSeconds.observe({ provider: call.provider }, call.ms / 1_000);
    metrics.providerCostMicroUsd.inc({ provider: call.provider }, call.costMicroUsd);
  }
}

const round = (ms: number) => Math.round(ms * 10) / 10;

/** Queues a search for the search log. */
function logSearch({ searchLog }: Pick<RunningSearches, "searchLog">, job: SearchJob, trace: SearchTrace): void {
  const { requestId, organizationId, tokenId, key, query } = job;
  const durationMs = trace.queueMs + trace.runMs;
  searchLog?.add({ requestId, organizationId, tokenId, keyHash: key?.hash, query, durationMs, trace });
}

/** The trace of a search that no provider was asked for. */
const notSearched = { provider: "none", calls: [], costMicroUsd: 0 };

/** Refunds a search that threw, which is a defect, or that lost every worker that had it, and answers its caller. */
async function refundFailed(context: RunningSearches, job: SearchJob): Promise<void> {
  const { requestId, organizationId, tokenId, key, inbox } = job;
  const trace = { ...notSearched, worker: context.workerId, from: "provider" as const, queueMs: 0, runMs: 0 };
  const request = { requestId, organizationId, tokenId, key, wanted: "refund", reason: "worker_failed" } as const;
  try {
    const decision = await context.settlement.decide(request, failedRetryMs);
    const outcome = { kind: "failure", code: "internal_error", details: {}, charged: isCharged(decision) } as const;
    await context.settlement.publish(
      { request, decision, outcome, reply: { inbox, trace }, ifCharged: "end_hold" },
      failedRetryMs,
    );
  } catch (error) {
    context.log.warn({ err: error, requestId }, "the sweeper will refund a failed search");
  }
  logSearch(context, job, trace);
}

const compactTypes: readonly ResultType[] = ["organic"];

/** The body of a charged search, in the format that its caller ordered, as the bytes that the caller gets. */
export function writeAnswerBody(job: SearchJob, answer: Extract<EngineAnswer, { ok: true }>): Buffer {
  const { format, ...rest } = job.query;
  const { searchedKeyword, totalResultsCount, truncated } = answer;
  const results = orderedResults(answer.results, job.query);
  const corrected = searchedKeyword === undefined ? undefined : { searchedKeyword };
  const credits = { creditsCharged: job.priceMils, creditsRemaining: job.remainingMils };
  const cut = truncated && { truncated };
  const { requestId } = job;
  if (format === undefined) {
    const query = { ...rest, ...corrected };
    return serializeAnswer({ requestId, query, ...credits, totalResultsCount, ...cut, results });
  }
  const query = { ...rest, format, ...corrected };
  return serializeAnswer({ requestId, query, ...credits, ...cut, results: results.map(shorten) });
}

/** The results that the caller ordered. They keep their ranks on the whole page. */
function orderedResults(results: readonly Result[], { targetDomain, types, format }: Query): Result[] {
  const wanted = format === "compact" ? compactTypes : types;
  return results.filter(
    ({ type, domain }) =>
      (wanted === undefined || wanted.includes(type)) &&
      (targetDomain === undefined || isSameOrSubdomain(domain, targetDomain)),
  );
}

const shorten = ({ title, url, description }: Result) => ({ title, url, description });

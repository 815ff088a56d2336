import { limitBehind, limitDetails, renewalBehind, spentIn } from "../shared/credits/limits.ts";
import { type Decision, isCharged, type SettlementRequest } from "../shared/credits/ledger.ts";
import { type AnswerToKeep, type KeptAnswers, writeFindings } from "../shared/credits/kept-answers.ts";
import { compressAnswer } from "../shared/compress-answer.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import type { SearchCalls } from "../shared/credits/unpaid-calls.ts";
import type { Context } from "../shared/process/context.ts";
import { withTimeout } from "../shared/concurrency/wait-for.ts";
import { isTransient } from "../shared/database/transient-errors.ts";
import { engineFailures, type RefundReason } from "../shared/outcomes.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { type PayableCalls, type SearchOutcome, type SearchTrace, serializeAnswer } from "../shared/queue/replies.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";
import type { SearchLog } from "../shared/search-log/search-log.ts";
import type { Spans } from "../shared/tracing/spans.ts";
import type { DisconnectedSearches } from "./disconnected-searches.ts";
import type { OpenSearchCounts } from "./open-searches.ts";
import type { EngineAnswer } from "./engine/google-engine.ts";
import type { Engine, EngineSearch, SourcedAnswer } from "./engine/single-flight.ts";
import type { RawAnswers } from "./raw-answers/record-raw-answers.ts";
import { AverageRunTime } from "./concurrency-controller.ts";
import { type JobHandlers, JobLoop, WorkersLost } from "./job-loop.ts";
import { type includes, queryFingerprint, searchedPart } from "../shared/query/query.ts";
import { orderedResults, shortened } from "../shared/search-answer.ts";

/**
 * The worker's half of a search: take the job, search within the deadline, let Postgres decide who pays, and reply. A job may
 * run twice, after a crash or a lost lock. Postgres decides each search once, so the second run has no further effect. When a
 * caller disconnects, the search sends no further call, and the API refunds it at once. It keeps its concurrency slot, with 0
 * mils, until the calls already sent have ended.
 */

const failedRetryMs = 5_000;
const findKeptTimeoutMs = 1_000;
const daySeconds = 86_400;

type RunningSearches = Pick<Context, "clock" | "config" | "log" | "metrics" | "tracing"> & {
  workerId: string;
  engine: Engine;
  settlement: Settlement;
  disconnectedSearches: DisconnectedSearches;
  openSearchCounts: OpenSearchCounts;
  /** Absent unless raw answers are kept. */
  rawAnswers?: RawAnswers | undefined;
  /** Absent unless the operator allows answers to be kept. */
  keptAnswers?: KeptAnswers | undefined;
  /** Absent unless searches are logged. */
  searchLog?: SearchLog | undefined;
};

type RunOptions = Parameters<JobHandlers["run"]>[1];

/** Takes searches from the queue until the process stops. @param slots how many at once at first. */
export async function takeJobs(
  context: Context & RunningSearches,
  slots: number,
): Promise<{ jobs: JobLoop; average: AverageRunTime }> {
  const average = new AverageRunTime();
  const run: JobHandlers["run"] = (job, options) => {
    const startedAtMs = performance.now();
    return runSearchJob(context, job, options).finally(() => average.add(performance.now() - startedAtMs));
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

async function runSearchJob(context: RunningSearches, job: SearchJob, options: RunOptions): Promise<void> {
  const { clock, settlement, log, tracing } = context;
  const spans = tracing.resume(job.traceparent);
  const { ending, trace, payable, callerDisconnected } = await search(context, job, options, spans);
  const compressed = job.key && ending.ok ? await compressAnswer(ending.body) : undefined;
  const truncated = ending.ok && ending.truncated && { truncated: true };
  const line = { requestId: job.requestId, outcome: outcomeOf(ending, callerDisconnected), ...truncated, ...trace };
  const request = settlementRequest(job, ending, { callerDisconnected, compressed });
  const retryForMs = Math.max(0, job.deadlineAtMs - clock.nowMs()) + protocolTimes.sweepGraceMs;
  const startedAtMs = performance.now();
  try {
    const decision = await settlement.decide(request, retryForMs);
    const outcome = conclude(context, job, ending, decision);
    if (outcome.kind === "answer" && ending.ok && outcome.body === ending.body) outcome.compressed = compressed;
    // Under a key a charge is never reversed.
    const reply = { inbox: job.inbox, trace, payable: job.key ? undefined : payable };
    const calls = payable && withBudget(job, payable);
    await settlement.publish({ request, decision, outcome, reply, calls, ifCharged: "end_hold" }, retryForMs);
    spans?.add("settlement", startedAtMs, { decided: decision.kind, from: trace.from, flight: payable?.flight });
    await keepAnswer(context, job, ending, decision);
    log.info({ ...line, decided: decision.kind, chargedMils: decision.chargedMils }, "search");
  } catch (error) {
    // Postgres was unreachable until after the deadline, and the API has answered 504.
    if (!isTransient(error)) throw error;
    log.warn({ err: error, ...line }, "the sweeper or the reconciler will end a search");
  }
  logSearch(context, job, trace);
}

/** Keeps the answer of a search that was charged, if its organization wants that. A second run of the search keeps it once. */
async function keepAnswer({ keptAnswers }: RunningSearches, job: SearchJob, ending: Ending, decision: Decision) {
  if (!ending.ok || !ending.findings || !isCharged(decision)) return;
  const { requestId, organizationId } = job;
  await keptAnswers?.keep({ requestId, organizationId, fingerprint: fingerprintOf(job), ...ending.findings });
}

const fingerprintOf = ({ query }: SearchJob) => queryFingerprint(searchedPart(query));

/**
 * How the engine ended a search: the body to send if the search is charged, or the error. The body is serialized before the
 * decision, so that the results can be collected while the search waits for it.
 */
type Ending =
  | { ok: true; body: Buffer; truncated: boolean; priceMils: number; findings: ToKeep | undefined }
  | (Failed & { reason: RefundReason });
/** What to keep of an answer, serialized. */
type ToKeep = Pick<AnswerToKeep, "body" | "fetchedAtMs" | "provider">;
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
  { isRepeated, lease }: RunOptions,
  spans: Spans | undefined,
): Promise<{ ending: Ending; trace: SearchTrace; payable: PayableCalls | undefined; callerDisconnected: boolean }> {
  const { clock, metrics, disconnectedSearches } = context;
  const startedAtMs = clock.nowMs();
  const beganAtMs = performance.now();
  // At most all the time that it had: the clock of Redis may have been set since.
  const queueMs = Math.min(Math.max(0, startedAtMs - job.enqueuedAtMs), job.timeoutMs);
  metrics.queueWaitSeconds.observe(queueMs / 1_000);
  spans?.add("queue", beganAtMs - queueMs, { worker: context.workerId });

  const disconnected = await disconnectedSearches.begin(job, isRepeated);
  const leftMs = job.deadlineAtMs - startedAtMs - protocolTimes.settleMarginMs;
  const recorder = context.rawAnswers?.recorderFor(job.requestId);
  const answer = await ask(context, job, { leftMs, lease, disconnected, recorder, spans }).finally(() =>
    disconnectedSearches.end(job),
  );
  const { calls, callsOf = null } = answer.trace;
  if (calls.length === 0) recorder?.recordNoCall({ from: answer.from, callsOf });
  const runMs = performance.now() - beganAtMs;
  metrics.searchSeconds.observe(runMs / 1_000);
  const times = { queueMs: round(queueMs), runMs: round(runMs) };
  const trace: SearchTrace = { worker: context.workerId, ...answer.trace, from: answer.from, ...times };
  countCalls(context, trace);
  return {
    ending: endingOf(context, job, answer),
    trace,
    payable: answer.payable,
    callerDisconnected: disconnected.aborted,
  };
}

function endingOf({ config, keptAnswers }: RunningSearches, job: SearchJob, answer: SourcedAnswer): Ending {
  if (answer.ok) {
    const priceMils = priceOf(job, answer);
    const body = writeAnswerBody(job, answer, { priceMils, tellsProvider: config.ANSWERED_BY === "on" });
    const isNew = answer.from !== "kept" && job.cachedPriceMils !== undefined;
    const findings = keptAnswers && isNew ? findingsOf(job, answer) : undefined;
    return { ok: true, body, truncated: answer.truncated === true, priceMils, findings };
  }
  const { code, details, trace } = answer;
  return {
    ok: false,
    code,
    details,
    reason: trace === notSearched ? "deadline_passed" : refundReasonOf(code, details),
  };
}

/** Each kind of 502 is a reason of its own, which the payer reads. */
function refundReasonOf(code: Failed["code"], { reason }: Failed["details"]): RefundReason {
  if (code !== "engine_error") return code;
  return engineFailures.find((failure) => failure === reason) ?? "provider_unavailable";
}

/** What a search costs that is answered: at most what it holds. */
const priceOf = ({ priceMils, cachedPriceMils = priceMils }: SearchJob, { from }: Pick<SourcedAnswer, "from">) =>
  from === "kept" ? Math.min(priceMils, cachedPriceMils) : priceMils;

function findingsOf({ query }: SearchJob, answer: Extract<SourcedAnswer, { ok: true }>): ToKeep | undefined {
  const { results, totalResultsCount, searchedKeyword, truncated, trace, atMs } = answer;
  if (atMs === undefined) return undefined;
  const head = { totalResultsCount, ...(searchedKeyword !== undefined && { searchedKeyword }) };
  const body = writeFindings(query, { ...head, ...(truncated && { truncated }), results });
  return { body, fetchedAtMs: atMs, provider: trace.provider };
}

async function ask(
  context: RunningSearches,
  job: SearchJob,
  { leftMs, ...options }: { leftMs: number } & Pick<EngineSearch, "lease" | "disconnected" | "recorder" | "spans">,
): Promise<SourcedAnswer> {
  const beganAtMs = performance.now();
  const kept = await findKept(context, job, leftMs);
  if (kept) return kept;
  const remainingMs = leftMs - (performance.now() - beganAtMs);
  if (remainingMs <= 0) return { ok: false, code: "engine_timeout", details: {}, trace: notSearched, from: "provider" };
  const { query, enqueuedAtMs } = job;
  const claim = context.openSearchCounts.begin(job);
  const answer = context.engine.search({ query, remainingMs, enqueuedAtMs, claim, ...options });
  return answer.finally(() => context.openSearchCounts.end(job));
}

/**
 * The organization's own answer to the query, if the caller accepts its age. Without an answer from Postgres a provider is asked, as if
 * there were none. Its charge is final, and this search decides its own: so a run that is repeated can only meet its decision.
 */
async function findKept(
  { keptAnswers, config, log, metrics }: RunningSearches,
  job: SearchJob,
  leftMs: number,
): Promise<Extract<SourcedAnswer, { ok: true }> | undefined> {
  const { organizationId, enqueuedAtMs, cachedPriceMils } = job;
  const { maxAgeSeconds = 0 } = job.query;
  if (!keptAnswers || cachedPriceMils === undefined || maxAgeSeconds === 0 || leftMs <= 0) return undefined;
  const ageSeconds = Math.min(maxAgeSeconds, config.KEPT_ANSWERS_DAYS * daySeconds);
  const query = { organizationId, fingerprint: fingerprintOf(job), sinceMs: enqueuedAtMs - ageSeconds * 1_000 };
  const reading = withTimeout(Math.min(leftMs, findKeptTimeoutMs), keptAnswers.find(query));
  const found = await reading.catch((error: unknown) => {
    log.warn({ err: error, requestId: job.requestId }, "kept answers could not be read");
    return undefined;
  });
  if (!found) return undefined;
  metrics.answeredSearches.inc({ from: "kept" });
  const { provider, fetchedAtMs: atMs, requestId: _requestId, ...findings } = found;
  return { ...findings, ok: true, from: "kept", atMs, trace: { provider, calls: [], costMicroUsd: 0 } };
}

/** Nothing is charged if the caller has disconnected. @param given.compressed the answer for the key. */
function settlementRequest(
  job: SearchJob,
  ending: Ending,
  { callerDisconnected, compressed }: { callerDisconnected: boolean; compressed: Buffer | undefined },
): SettlementRequest {
  const { requestId, organizationId, tokenId, key, limits } = job;
  const settled = { requestId, organizationId, tokenId, key };
  if (callerDisconnected) return { ...settled, wanted: "refund", reason: "caller_disconnected" };
  if (ending.ok) return { ...settled, wanted: "charge", priceMils: ending.priceMils, limits, answer: compressed };
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
  if (isCharged(decision)) {
    const body = chargedMils === ending.priceMils ? ending.body : withCharge(ending.body, job, chargedMils);
    return { kind: "answer", requestId: job.requestId, body, chargedMils };
  }
  const { reason } = decision;
  if (reason === "out_of_credits" || limitBehind(reason))
    return { kind: "failure", code: "out_of_credits", details: outOfCredits(context, job, decision) };
  if (reason === "idempotency_key_reused") return { kind: "failure", code: "bad_request", details: { reason } };
  // The API or the sweeper refunded the search before this run had its answer.
  return { kind: "failure", code: "engine_timeout", details: { timeoutMs } };
}

/** The body of a search whose earlier run was charged another price, because one of both was answered by a kept answer. */
function withCharge(body: Buffer, { priceMils, remainingMils }: SearchJob, chargedMils: number): Buffer {
  const credits = { creditsCharged: chargedMils, creditsRemaining: remainingMils + priceMils - chargedMils };
  return serializeAnswer({ ...JSON.parse(body.toString()), ...credits });
}

function outOfCredits({ config }: RunningSearches, job: SearchJob, { reason, balance, token }: Decision) {
  const { priceMils, limits } = job;
  const topupUrl = config.TOPUP_URL;
  const limit = limitBehind(reason);
  const spending = limit?.scope === "token" ? token?.spending : balance.spending;
  if (limit && spending) {
    const spentMils = spentIn(limit.period, spending);
    const renewsAt = renewalBehind(limit.period, spending);
    return limitDetails(limits, limit, { priceMils, spentMils, heldMils: 0, topupUrl, renewsAt });
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

/** The body of a charged search, in the format that its caller ordered, as the bytes that the caller gets. */
export function writeAnswerBody(
  job: SearchJob,
  answer: Extract<SourcedAnswer, { ok: true }>,
  { priceMils, tellsProvider }: { priceMils: number; tellsProvider: boolean },
): Buffer {
  const { format, ...rest } = job.query;
  const { searchedKeyword, totalResultsCount, truncated, trace, atMs } = answer;
  const asks = (field: (typeof includes)[number]) => rest.include?.includes(field) === true;
  const further = {
    ...(asks("fetchedAt") && atMs !== undefined && { fetchedAt: new Date(atMs).toISOString() }),
    ...(asks("answeredBy") && tellsProvider && { answeredBy: trace.provider }),
  };
  const results = orderedResults(answer.results, job.query);
  const corrected = searchedKeyword === undefined ? undefined : { searchedKeyword };
  // The hold is the whole price.
  const credits = { creditsCharged: priceMils, creditsRemaining: job.remainingMils + job.priceMils - priceMils };
  const cut = truncated && { truncated };
  const { requestId } = job;
  if (format === undefined) {
    const query = { ...rest, ...corrected };
    return serializeAnswer({ requestId, query, ...credits, ...further, totalResultsCount, ...cut, results });
  }
  const query = { ...rest, format, ...corrected };
  return serializeAnswer({ requestId, query, ...credits, ...further, ...cut, results: results.map(shortened) });
}

import { createHash } from "node:crypto";
import type { SearchTrace } from "../../shared/queue/replies.ts";
import { withTimeout } from "../../shared/concurrency/with-timeout.ts";
import type { RateWindow } from "../../shared/credits/holds.ts";
import type { IdempotencyKey } from "../../shared/credits/idempotency-key.ts";
import type { Decision, RefundReason } from "../../shared/credits/ledger.ts";
import type { CallerError } from "../../shared/errors.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { queryFingerprint } from "../../shared/query/query.ts";
import { mayHaveRun } from "../../shared/redis/connect.ts";
import { AdmissionFailed, type Admitted, type Admit } from "./admission.ts";
import type { ApiContext } from "../context.ts";
import { CallerDisconnected, engineTimeout, SearchFailed, unavailable } from "../errors.ts";
import type { Reply } from "./reply-inbox.ts";
import { withinDeadline, remainingMs, type SearchRequest } from "./search-request.ts";

/**
 * One search from the gate to its answer: the order of the steps, and the undo of each. Whatever goes wrong after a hold
 * was placed ends it: Postgres gets the deciding entry first, then Redis drops the hold.
 */

export interface DeliverableAnswer {
  /** The request that the answer belongs to: this one, or the first one under its Idempotency-Key. */
  requestId: string;
  body: Buffer;
  replayed: boolean;
  window: RateWindow;
  /** Mils charged by this very request; 0 for replays and for repeats of what was paid. */
  chargedMils: number;
  trace: SearchTrace | undefined;
}

/**
 * Runs a search and resolves with its answer.
 * @throws {CallerError} the refusal or failure to tell; {@link CallerDisconnected} where nobody is left to be told.
 */
export async function runSearch(context: ApiContext, passGate: Admit, call: SearchRequest): Promise<DeliverableAnswer> {
  const key = keyOf(call);
  const passed = await enter(context, passGate, call, key);
  if (passed.outcome === "replayed") return { ...passed, replayed: true, chargedMils: 0, trace: undefined };

  const arrived = context.inbox.expect(call.requestId);
  try {
    await enqueue(context, call, key, passed);
    const arrival = await firstOf(context, call, key, arrived);
    return finish(context, call, passed, arrival);
  } finally {
    context.inbox.forget(call.requestId);
  }
}

function keyOf({ idempotencyKey, query }: SearchRequest): IdempotencyKey | undefined {
  if (idempotencyKey === undefined) return undefined;
  const hash = createHash("sha256").update(idempotencyKey).digest("hex");
  return { hash, fingerprint: queryFingerprint(query) };
}

async function enter(
  context: ApiContext,
  passGate: Admit,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
): Promise<Admitted> {
  try {
    return await passGate(call, key);
  } catch (error) {
    if (!(error instanceof AdmissionFailed)) throw error;
    // The hold may stand although no reply came. It is undone while the caller is told already.
    if (mayHaveRun(error.cause)) undo(context, call, key, "admission_unknown", unavailable("redis_unreachable"));
    throw unavailable("redis_unreachable");
  }
}

async function enqueue(
  context: ApiContext,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  held: Extract<Admitted, { outcome: "held" }>,
): Promise<void> {
  const { requestId, query } = call;
  try {
    const enqueued = context.queue.enqueue({
      requestId,
      organizationId: call.caller.organizationId,
      query,
      priceMils: held.priceMils,
      remainingMils: held.remainingMils,
      deadlineAtMs: held.deadlineAtMs,
      enqueuedAtMs: held.deadlineAtMs - remainingMs(context, call),
      timeoutMs: context.config.SEARCH_DEADLINE_MS,
      inbox: context.inbox.key,
      ...(key && { key }),
    });
    await withinDeadline(context, call, enqueued);
  } catch (error) {
    context.log.warn({ err: error, requestId }, "enqueueing failed");
    undo(context, call, key, "not_enqueued", unavailable("redis_unreachable"));
    throw unavailable("redis_unreachable");
  }
}

/** The answer, the deadline, or an unkeyed caller's hang-up, whichever comes first. */
async function firstOf(
  context: ApiContext,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  arrived: Promise<Reply>,
): Promise<Reply> {
  const first = await race(arrived, remainingMs(context, call), call.disconnected);
  if (first === "gone") {
    // Under a key a hang-up changes nothing: the search runs on, and its answer stays retrievable.
    if (key) throw new CallerDisconnected();
    void context.queue.remove(call.requestId).catch(() => undefined); // Spares the provider, if no worker has it yet.
    undo(context, call, key, "caller_gone", timedOut(context));
    throw new CallerDisconnected();
  }
  return first === "late" ? endLate(context, call, key, arrived) : first;
}

async function race(arrived: Promise<Reply>, boundMs: number, gone?: AbortSignal): Promise<Reply | "late" | "gone"> {
  let timer: NodeJS.Timeout | undefined;
  let onGone: (() => void) | undefined;
  const other = new Promise<"late" | "gone">((resolve) => {
    timer = setTimeout(() => resolve("late"), Math.max(0, boundMs));
    onGone = () => resolve("gone");
    if (gone?.aborted) resolve("gone");
    gone?.addEventListener("abort", onGone, { once: true });
  });
  try {
    return await Promise.race([arrived, other]);
  } finally {
    clearTimeout(timer);
    if (onGone) gone?.removeEventListener("abort", onGone);
  }
}

/** The wait ran out: refund, unless the charge was first; then its answer has a moment to arrive, or is reversed. */
async function endLate(
  context: ApiContext,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  arrived: Promise<Reply>,
): Promise<Reply> {
  const told = timedOut(context);
  const refund = settleRefund(context, call, key, "engine_timeout", told);
  const decision = await withTimeout(protocolTimes.undoTimeoutMs, refund).catch(() => undefined);
  if (decision?.kind === "charge" || decision?.reason === "already_paid") {
    const late = await race(arrived, protocolTimes.lateAnswerMs);
    if (late !== "late" && late !== "gone") return late;
    if (!key) context.deliveries.reverse(chargeOf(call), "engine_timeout");
  }
  throw told;
}

function finish(
  context: ApiContext,
  call: SearchRequest,
  held: Extract<Admitted, { outcome: "held" }>,
  { outcome, trace }: Reply,
): DeliverableAnswer {
  if (outcome.kind === "failure") {
    // An earlier run's answer was lost on its way here. Under a key it is owed to the key.
    if (outcome.charged && call.idempotencyKey === undefined)
      context.deliveries.reverse(chargeOf(call), "engine_timeout");
    throw new SearchFailed(outcome.code, outcome.details, trace);
  }
  const { body, requestId, chargedMils } = outcome;
  return { requestId, body, replayed: requestId !== call.requestId, window: held.window, chargedMils, trace };
}

/** Gives a search up while its caller is told already, or is gone: the hold goes back. Nobody waits for this. */
function undo(
  context: ApiContext,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  reason: RefundReason,
  told: CallerError,
): void {
  void settleRefund(context, call, key, reason, told)
    .then((decision) => {
      // A worker was faster, and its answer can reach nobody any more.
      if (decision.kind === "charge" && !key) context.deliveries.reverse(chargeOf(call), "caller_gone");
    })
    .catch((error: unknown) => {
      context.log.warn({ err: error, requestId: call.requestId }, "an undo is left to the sweeper");
    });
}

/** Asks Postgres for a refund and drops the hold. The decision tells whether a charge was there before. */
async function settleRefund(
  context: ApiContext,
  call: SearchRequest,
  key: IdempotencyKey | undefined,
  reason: RefundReason,
  told: CallerError,
): Promise<Decision> {
  const { decision } = await context.settlement.settle({
    request: { wanted: "refund", reason, key, ...chargeOf(call) },
    retryForMs: protocolTimes.undoRetryMs,
    ifCharged: "leave",
    toOutcome: () => ({ kind: "failure", code: told.code, details: told.details }),
  });
  return decision;
}

/** No answer came, or could be told, within the deadline. */
export const timedOut = ({ config }: ApiContext) => engineTimeout(config.SEARCH_DEADLINE_MS);

const chargeOf = (call: SearchRequest) => ({ organizationId: call.caller.organizationId, requestId: call.requestId });

import type { ApiError, Reply } from "./answers.ts";
import * as errors from "./errors.ts";
import { type Attempted, readReply } from "./read-reply.ts";

// The API answers within 30 seconds unless its operator has set another deadline. A connection that is silent for longer is lost.
const attemptMsMax = 35_000;
const pauseMsMin = 500;
const pauseMsMax = 8_000;

/** Where a client sends its calls. */
export interface Connection {
  baseURL: string;
  token: string;
  fetch: typeof fetch;
}

/** One call of the API, which may take several requests. */
export interface Call {
  method: "GET" | "POST";
  path: string;
  body?: string;
  /** A field that every answer has. */
  answerField: string;
  /** Sent with each of the requests. A call without one is free. */
  idempotencyKey?: string;
  signal?: AbortSignal | undefined;
  /** From the call's start to its end, pauses included. */
  deadlineMs: number;
  /** How often a call is repeated that was certainly not charged. 0: no call is ever repeated. */
  maxRetries: number;
}

/**
 * Sends a call until it is answered. It is repeated under the same key while a repeat can help and the deadline allows it. Once
 * an answer may have been charged and lost, only the deadline ends the repeats, because each of them can fetch it. So does it
 * while other searches of the organization take all its slots.
 * @throws {SerpmillError}
 */
export async function send<Answer>(connection: Connection, given: Call): Promise<Reply<Answer>> {
  // The calls that share the caller's signal add no listeners to it: Node 20 warns of a leak if there are more than ten.
  const call = { ...given, signal: given.signal && AbortSignal.any([given.signal]) };
  const { idempotencyKey, signal, maxRetries } = call;
  // This clock never jumps.
  const endsAtMs = performance.now() + call.deadlineMs;
  let mayBeCharged = false;
  let failures = 0;
  for (let attempts = 1; ; attempts += 1) {
    // What was not sent is not charged.
    const attempted = signal?.aborted
      ? { ...aborted(signal), mayBeCharged: false }
      : await attempt<Answer>(connection, call, endsAtMs);
    if ("data" in attempted) return { ...attempted, idempotencyKey, attempts };
    mayBeCharged ||= attempted.mayBeCharged && idempotencyKey !== undefined;
    const error = errorOf({ ...attempted, mayBeCharged }, { idempotencyKey, attempts });
    failures += waitsForOwnSearches(error) ? 0 : 1;
    const mayRepeat = attempted.canRepeat && maxRetries > 0 && (mayBeCharged || failures <= maxRetries);
    const pauseMs = pauseMsOf(attempts, attempted.retryAfterMs);
    if (!mayRepeat || performance.now() + pauseMs >= endsAtMs) throw error;
    await pause(pauseMs, signal);
  }
}

async function attempt<Answer>(connection: Connection, call: Call, endsAtMs: number): Promise<Attempted<Answer>> {
  const { signal, body, idempotencyKey } = call;
  const stop = new AbortController();
  const abort = () => stop.abort();
  const timer = setTimeout(abort, Math.min(attemptMsMax, endsAtMs - performance.now()));
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const response = await connection.fetch(connection.baseURL + call.path, {
      method: call.method,
      headers: {
        authorization: `Bearer ${connection.token}`,
        accept: "application/json",
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      },
      ...(body !== undefined && { body }),
      redirect: "manual", // The token is for this address only.
      signal: stop.signal,
    });
    return readReply(response, await response.text(), call.answerField);
  } catch (cause) {
    return signal?.aborted ? aborted(signal) : lost(cause, stop.signal.aborted);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

const aborted = (signal: AbortSignal): errors.Failure => ({
  code: "aborted",
  message: "The caller's signal ended the call. A search that was already sent goes on, and is charged if it succeeds.",
  details: {},
  mayBeCharged: true,
  cause: signal.reason,
  canRepeat: false,
});

// What Node, Deno and Bun call a connection that never came about, over which no request was sent. Other words of TLS may come
// after the request, and a network may go away under an open connection: `read EHOSTUNREACH (EHOSTUNREACH)`.
const neverConnected =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|(?<!(?:read|write) (?:E\w+ \()?)E(?:HOST|NET)UNREACH|CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket|CERT|UNABLE_TO_|ERR_TLS|client error \(Connect\)|HTTP Tunneling|bad port/;

function lost(cause: unknown, isLate: boolean): errors.Failure {
  const reason = describe(cause);
  return {
    code: "lost_reply",
    message: isLate ? "No answer came in time." : `The connection failed before the answer was complete: ${reason}`,
    details: {},
    mayBeCharged: isLate || !neverConnected.test(reason),
    cause,
    canRepeat: true,
  };
}

/** The messages and codes of an error and its causes: fetch says only "fetch failed". */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? ` (${String(error.code)})` : "";
  return `${error.message}${code}${error.cause === undefined ? "" : `: ${describe(error.cause)}`}`;
}

/** A refusal that is never charged and takes nothing of the rate window. Another job of the organization may cause many of them. */
const waitsForOwnSearches = ({ code, details }: errors.SerpmillError) =>
  code === "rate_limited" && "reason" in details && details.reason === "concurrency";

/**
 * With jitter, so that callers that failed together do not come back together. Also with a `Retry-After` it grows: the API refuses
 * an organization that it had to refuse too often.
 */
function pauseMsOf(attempts: number, retryAfterMs = 0): number {
  const grownMs = Math.min(pauseMsMin * 2 ** (attempts - 1), pauseMsMax) * (0.5 + Math.random() / 2);
  return Math.max(grownMs, retryAfterMs + Math.random() * pauseMsMin);
}

/** Resolves after the time, or when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
    if (signal?.aborted) end();
  });
}

const classes = {
  bad_request: errors.BadRequestError,
  query_rejected: errors.QueryRejectedError,
  unauthenticated: errors.UnauthenticatedError,
  plan_required: errors.PlanRequiredError,
  out_of_credits: errors.OutOfCreditsError,
  rate_limited: errors.RateLimitedError,
  internal_error: errors.InternalError,
  not_implemented: errors.NotImplementedError,
  engine_error: errors.EngineError,
  unavailable: errors.UnavailableError,
  engine_timeout: errors.EngineTimeoutError,
  lost_reply: errors.LostReplyError,
  unexpected_reply: errors.UnexpectedReplyError,
  aborted: errors.AbortedError,
} satisfies Record<ApiError["code"] | "lost_reply" | "unexpected_reply" | "aborted", typeof errors.SerpmillError>;

/**
 * The errors of all codes that this client knows: a `switch` on `code` narrows `details`. It needs a `default`, because a newer
 * API may add codes.
 */
export type CodedError = InstanceType<(typeof classes)[keyof typeof classes]>;

/** The error of a failed call, of the class of its code. A code that a newer API added gets the base class. */
function errorOf(failure: errors.Failure, sent: errors.Sent): errors.SerpmillError {
  const Class =
    new Map<string, typeof errors.SerpmillError>(Object.entries(classes)).get(failure.code) ?? errors.SerpmillError;
  return new Class(failure, sent);
}

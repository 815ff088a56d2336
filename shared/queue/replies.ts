import type { ChainableCommander, Redis } from "ioredis";
import { z } from "zod";
import { type ErrorCode, type ErrorDetails, errors } from "../errors.ts";
import type { SearchResponseBody } from "../results.ts";

/**
 * The way back. Each API process has an inbox, a stream in Redis, that its jobs name; the worker appends the finished
 * answer there as the very bytes that the API will send. A reader that lost its connection goes on where it stopped. What
 * is lost all the same ends as a time-out, and its charge is given back.
 */

// The reader trims what it has read; these bounds are for a reader that is gone.
const inboxLengthMax = 10_000;
const inboxMs = 120_000;

export const replyInboxKey = (apiId: string) => `inbox:${apiId}`;

export const answerSources = ["provider", "shared", "cache"] as const;
export type AnswerSource = (typeof answerSources)[number];

/** What the search cost and took, for the one log line that the API writes about it. */
export const searchTrace = z.object({
  provider: z.string(),
  /** A provider, an equal search of the same moment, or the cache. */
  from: z.enum(answerSources).default("provider"),
  calls: z.array(
    z.object({ provider: z.string(), outcome: z.string(), ms: z.number(), costMicroUsd: z.number().default(0) }),
  ),
  costMicroUsd: z.number(),
  queueMs: z.number(),
  runMs: z.number(),
});
export type SearchTrace = z.infer<typeof searchTrace>;

/**
 * How a search ended: its answer's bytes, charged or free, or the error that the caller is told. A failure is `charged`
 * where an earlier run had charged and its answer was lost; the API that waits knows whether it had that answer all the
 * same, so the API alone gives back.
 */
export type SearchOutcome =
  | { kind: "answer"; requestId: string; body: Buffer; chargedMils: number }
  | { kind: "failure"; code: ErrorCode; details: ErrorDetails; charged?: boolean };

/** The body of a 200, serialised once, by the worker, and from then on only bytes. */
export function serializeAnswer(answer: SearchResponseBody): Buffer {
  return Buffer.from(JSON.stringify(answer));
}

/** A failure as it stands under an Idempotency-Key for the repeats that wait, and in an inbox. */
export function serializeFailure(code: ErrorCode, details: ErrorDetails): string {
  return JSON.stringify({ code, details });
}

const failure = z.object({
  code: z.custom<ErrorCode>((code) => typeof code === "string" && code in errors),
  details: z.record(z.string(), z.unknown()),
});

export function parseFailure(text: string): { kind: "failure" } & z.infer<typeof failure> {
  return { kind: "failure", ...failure.parse(JSON.parse(text)) };
}

const entryHead = z.object({
  requestId: z.string(),
  trace: searchTrace,
  /** Absent for a failure. */
  answer: z.object({ requestId: z.string(), chargedMils: z.number() }).optional(),
  /** Of a failure: whether a charge stands all the same. */
  charged: z.boolean().optional(),
});

/**
 * Appends an outcome for the request that waits at this inbox. Appending twice is harmless: the first one read counts.
 * {@link extendInboxTtl} belongs behind it, once for all that a pipeline appends to an inbox.
 */
export function appendReply(
  on: Redis | ChainableCommander,
  inbox: string,
  requestId: string,
  outcome: SearchOutcome,
  trace: SearchTrace,
): void {
  const head: z.infer<typeof entryHead> = { requestId, trace };
  if (outcome.kind === "answer") head.answer = { requestId: outcome.requestId, chargedMils: outcome.chargedMils };
  else if (outcome.charged) head.charged = true;
  const payload = outcome.kind === "answer" ? outcome.body : serializeFailure(outcome.code, outcome.details);
  void on.xadd(inbox, "MAXLEN", "~", inboxLengthMax, "*", "head", JSON.stringify(head), "payload", payload);
}

/** Lets an inbox live on for a while; without its reader it goes away by itself. */
export function extendInboxTtl(on: Redis | ChainableCommander, inbox: string): void {
  void on.pexpire(inbox, inboxMs);
}

/** One entry of an inbox: names and values in turn, as written above. @throws where the entry is not one of ours. */
export function readReply(fields: readonly Buffer[]): {
  requestId: string;
  outcome: SearchOutcome;
  trace: SearchTrace;
} {
  const [, head, , payload] = fields;
  if (!head || !payload) throw new Error("an inbox entry lacks its head or its payload");
  const { requestId, trace, answer, charged = false } = entryHead.parse(JSON.parse(head.toString()));
  const outcome: SearchOutcome = answer
    ? { kind: "answer", ...answer, body: payload }
    : { ...parseFailure(payload.toString()), charged };
  return { requestId, outcome, trace };
}

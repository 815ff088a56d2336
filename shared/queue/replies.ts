import { transcode } from "node:buffer";
import type { Redis } from "ioredis";
import { z } from "zod";
import { compressAnswer, expandAnswer } from "../compress-answer.ts";
import { Semaphore } from "../concurrency/semaphore.ts";
import { type ErrorCode, type ErrorDetails, errors } from "../errors.ts";
import { answerSources } from "../outcomes.ts";
import { protocolTimes } from "../protocol-times.ts";
import { Script } from "../redis/script.ts";
import type { CompactResponseBody, SearchResponseBody } from "../search-answer.ts";

/**
 * The replies from the workers to the API. Each API process has an inbox, a stream in Redis, which its jobs name. The
 * worker appends the finished answer there as the bytes that the API will send; large ones are compressed. A reader that
 * lost its connection continues where it stopped. If a reply is lost all the same, the search times out and its charge is
 * reversed.
 */

// The reader trims what it has read; this limit is for an inbox whose API has died.
const inboxLengthMax = 10_000;

export const replyInboxKey = (apiId: string) => `inbox:${apiId}`;

/** How long the search took and what it cost, for the API's log line. */
export const searchTrace = z.object({
  /** The worker that had the search. */
  worker: z.string(),
  provider: z.string(),
  from: z.enum(answerSources),
  calls: z.array(z.object({ provider: z.string(), outcome: z.string(), ms: z.number(), costMicroUsd: z.number() })),
  costMicroUsd: z.number(),
  queueMs: z.number(),
  runMs: z.number(),
});
export type SearchTrace = z.infer<typeof searchTrace>;

/**
 * How a search ended: the bytes of its answer, also compressed if its key has them, or the error for the caller. A failure is `charged` if an earlier run
 * charged and its answer was lost. Only the API that waits knows whether it has that answer after all, so only the API
 * reverses the charge.
 */
export type SearchOutcome =
  | { kind: "answer"; requestId: string; body: Buffer; compressed?: Buffer | undefined; chargedMils: number }
  | { kind: "failure"; code: ErrorCode; details: ErrorDetails; charged?: boolean };

/** The body of a 200. The worker serializes it once; from then on it is only bytes. */
export function serializeAnswer(answer: SearchResponseBody | CompactResponseBody): Buffer {
  // Most answers have characters above U+00FF. A text with one of them, V8 encodes character by character.
  return transcode(Buffer.from(JSON.stringify(answer), "utf16le"), "utf16le", "utf8");
}

/** A failure as an inbox holds it, and an Idempotency-Key for the repeats that wait. */
export const serializeFailure = (code: ErrorCode, details: ErrorDetails): string => JSON.stringify({ code, details });

const failure = z.object({
  code: z.custom<ErrorCode>((code) => typeof code === "string" && Object.hasOwn(errors, code)),
  details: z.record(z.string(), z.unknown()),
});

export function parseFailure(text: string): { kind: "failure" } & z.infer<typeof failure> {
  return { kind: "failure", ...failure.parse(JSON.parse(text)) };
}

const payableCalls = z.object({
  calls: z.number(),
  /** Of the flight that made them; searches that shared its answer name it too, with 0 calls. */
  flight: z.string(),
});
/** The provider calls that a search has to pay for. */
export type PayableCalls = z.infer<typeof payableCalls>;

const entryHead = z.object({
  requestId: z.string(),
  trace: searchTrace,
  /** Absent for a failure. */
  answer: z.object({ requestId: z.string(), chargedMils: z.number(), isCompressed: z.boolean() }).optional(),
  /** Of a failure: whether there is a charge nevertheless. */
  charged: z.boolean().optional(),
  /** The provider calls that count as unpaid if the caller does not take the answer. */
  payable: payableCalls.optional(),
});

// Redis copies a payload about six times, also into its append-only file. Below this size, compressing costs as much as it saves.
const compressedBytesMin = 16 * 1024;

/** Larger answers leave a few at a time, because each needs as much memory again while Redis takes it. */
const usualAnswerBytes = 256 * 1024;
const largeRepliesMax = 4;
const largeReplies = new Semaphore(largeRepliesMax);

const replyScript = Script.endingWork("reply", new URL("reply.lua", import.meta.url));

/** What a worker sends back for one search. */
export interface Reply {
  outcome: SearchOutcome;
  trace: SearchTrace;
  payable?: PayableCalls | undefined;
}

/** Sends a reply to its inbox. Sending it twice is harmless: the reader takes the first. An inbox whose API has died expires. */
export async function sendReply(redis: Redis, reply: Reply & { inbox: string; requestId: string }): Promise<void> {
  const { inbox, requestId, outcome, trace, payable } = reply;
  const head: z.infer<typeof entryHead> = { requestId, trace, ...(payable && { payable }) };
  let payload: Buffer | string;
  if (outcome.kind === "answer") {
    const { body, compressed, chargedMils } = outcome;
    const isCompressed = body.length >= compressedBytesMin;
    head.answer = { requestId: outcome.requestId, chargedMils, isCompressed };
    payload = isCompressed ? (compressed ?? (await compressAnswer(body))) : body;
  } else {
    if (outcome.charged) head.charged = true;
    payload = serializeFailure(outcome.code, outcome.details);
  }
  const args = [inboxLengthMax, protocolTimes.replyInboxMs, JSON.stringify(head), payload];
  const send = () => replyScript.run(redis, [inbox], args);
  await (payload.length > usualAnswerBytes ? largeReplies.run(send) : send());
}

/** Reads one entry of an inbox: field names and values in turn. @throws if it is not an entry of {@link sendReply}. */
export async function readReply(fields: readonly Buffer[]): Promise<Reply & { requestId: string }> {
  const [, head, , payload] = fields;
  if (!head || !payload) throw new Error("an inbox entry lacks its head or its payload");
  const { requestId, trace, answer, charged = false, payable } = entryHead.parse(JSON.parse(head.toString()));
  if (!answer) return { requestId, outcome: { ...parseFailure(payload.toString()), charged }, trace, payable };
  const { isCompressed, ...charge } = answer;
  const body = isCompressed ? await expandAnswer(payload) : payload;
  return { requestId, outcome: { kind: "answer", ...charge, body }, trace, payable };
}

import type { Redis } from "ioredis";
import { z } from "zod";
import { compressAnswer, expandAnswer } from "../../shared/compress-answer.ts";
import { answerSources } from "../../shared/outcomes.ts";
import { execPipeline } from "../../shared/redis/connect.ts";

/**
 * The raw answers of providers in Redis, for debugging: a list under the id of each search, with one entry for each call
 * that it made, or one that says why it made none. The worker appends, and the operator's command reads. The list expires
 * RAW_ANSWER_MINUTES after its first entry.
 */

/** Limits for the characters of the bodies that are kept: of one call, and of all calls of a search in one worker. */
export const bodyCharactersMax = 1024 * 1024;
export const searchCharactersMax = 4 * 1024 * 1024;

const rawAnswer = z.object({
  provider: z.string(),
  page: z.number(),
  /** When the call ended, by Redis' clock. */
  at: z.iso.datetime(),
  ms: z.number(),
  /** As in `provider_calls_total`. */
  outcome: z.string(),
  /** Null if no answer came. */
  status: z.number().nullable(),
  /** As it came, without our secrets; cut to the limits. Null if no answer came. */
  body: z.string().nullable(),
  /** How long the body was before it was cut. */
  bodyCharacters: z.number(),
});
/** One call to a provider and what it returned. Without headers and address: both may hold our key. */
export type RawAnswer = z.infer<typeof rawAnswer>;

const noCall = z.object({
  /** Where the search found its answer. `provider` if it ended before a call. */
  from: z.enum(answerSources),
  /** The search whose calls led to the answer, if it is known. */
  callsOf: z.string().nullable(),
});
/** Why a search made no call. */
export type NoCall = z.infer<typeof noCall>;

const entry = z.union([z.object({ call: rawAnswer }), z.object({ noCall })]);
export type RawAnswerEntry = z.infer<typeof entry>;

export const rawAnswersKeyOf = (requestId: string) => `raw:${requestId}`;

/** @throws if Redis does not take it. Either the entry and its expiry are stored, or none of them. */
export async function appendEntry(
  redis: Redis,
  requestId: string,
  kept: RawAnswerEntry,
  keepMs: number,
): Promise<void> {
  const key = rawAnswersKeyOf(requestId);
  const compressed = await compressAnswer(Buffer.from(JSON.stringify(kept)));
  await execPipeline(redis.multi().rpush(key, compressed).pexpire(key, keepMs, "NX"));
}

/** What is kept of a search: its calls by page and time, and the last reason why it made none. Undefined if nothing is. */
export async function readRawAnswers(
  redis: Redis,
  requestId: string,
): Promise<{ answers: RawAnswer[]; noCall: NoCall | undefined } | undefined> {
  const stored = await redis.lrangeBuffer(rawAnswersKeyOf(requestId), 0, -1);
  if (stored.length === 0) return undefined;
  const texts = await Promise.all(stored.map(async (bytes) => (await expandAnswer(bytes)).toString()));
  const entries = texts.map((text) => entry.parse(JSON.parse(text)));
  const answers = entries.flatMap((kept) => ("call" in kept ? [kept.call] : []));
  const reasons = entries.flatMap((kept) => ("noCall" in kept ? [kept.noCall] : []));
  const inOrder = answers.toSorted((one, other) => one.page - other.page || (one.at < other.at ? -1 : 1));
  return { answers: inOrder, noCall: reasons.at(-1) };
}

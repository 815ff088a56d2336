import type { Redis } from "ioredis";
import { z } from "zod";
import { withTimeout } from "../../shared/concurrency/with-timeout.ts";
import { Script } from "../../shared/redis/script.ts";
import { result } from "../../shared/results.ts";
import { type EngineAnswer, engineErrors } from "./google-engine.ts";
import { parseJson } from "../../shared/providers/sanitize.ts";

/**
 * Who asks the providers for a query, and what came of it: one record in Redis for each query that is being asked, so
 * that equal searches find each other, whichever worker has them. It may be lost at any time; then more than one asks.
 */

const leaseMs = 2_000;
const renewEveryMs = 600;
// What was told stays for whoever polls, and for equal searches that were in the queue meanwhile.
const toldMs = 5_000;

const claimScript = new Script("claim", new URL("acquire-lease.lua", import.meta.url));
const unclaimScript = new Script("unclaim", new URL("release-lease.lua", import.meta.url));

export function defineLeaseScripts(redis: Redis): void {
  for (const script of [claimScript, unclaimScript]) script.define(redis);
}

const trace = z.object({ provider: z.string(), costMicroUsd: z.number() });
const told = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), results: z.array(result), totalResultsCount: z.number(), trace }),
  z.object({ ok: z.literal(false), code: z.enum(engineErrors), details: z.record(z.string(), z.unknown()), trace }),
]);

const claimReply = z.union([
  z.tuple([z.literal("yours")]),
  z.tuple([z.literal("asked"), z.string()]),
  z.tuple([z.literal("answered"), z.string(), z.coerce.number()]),
  z.tuple([z.literal("failed"), z.string(), z.coerce.number()]),
]);

export type LeaseAttempt =
  | { kind: "yours" }
  /** Somebody asks, and is told apart by this token. */
  | { kind: "asked"; by: string }
  /** What came of it, since when by Redis' clock. The calls are those of whoever asked, and not told. */
  | { kind: "told"; answer: EngineAnswer; atMs: number };

const keyOf = (fingerprint: string) => `asked:${fingerprint}`;

/**
 * Claims a query, or learns who has, or what came of it.
 * @param options.sinceMs by Redis' clock: an older answer is none.
 * @param options.awaited the claim whose failure is shared, because it was waited for.
 * @param options.msMax milliseconds that Redis has to answer.
 * @throws where Redis does not answer; the claim may stand all the same, and lapses.
 */
export async function acquireLease(
  redis: Redis,
  fingerprint: string,
  wanted: { token: string; sinceMs: number; awaited?: string | undefined; msMax: number },
): Promise<LeaseAttempt> {
  const { token, sinceMs, awaited = "", msMax } = wanted;
  const asking = claimScript.run(redis, [keyOf(fingerprint)], [token, leaseMs, sinceMs, awaited]);
  const [kind, text = "", atMs = 0] = claimReply.parse(await withTimeout(msMax, asking));
  if (kind === "yours") return { kind };
  if (kind === "asked") return { kind, by: text };
  const answer = told.safeParse(parseJson(text)).data;
  if (answer) return { kind: "told", answer: { ...answer, trace: { ...answer.trace, calls: [] } }, atMs };
  // Told by another version of this code, say. Without it the next look finds nothing, and claims.
  await releaseWithoutResult(redis, fingerprint);
  return { kind: "asked", by: "" };
}

/** Keeps a claim from lapsing until the returned function is called. A process that dies or freezes loses it. */
export function keepLeaseAlive(redis: Redis, fingerprint: string): () => void {
  const renew = () => void redis.pexpire(keyOf(fingerprint), leaseMs, "GT").catch(() => undefined);
  const timer = setInterval(renew, renewEveryMs);
  return () => clearInterval(timer);
}

/** Ends a claim unless somebody waits for what comes of it. @returns whether somebody does. */
export async function releaseLease(redis: Redis, fingerprint: string, token: string): Promise<boolean> {
  return (await unclaimScript.run(redis, [keyOf(fingerprint)], [token])) === 1;
}

/**
 * Ends a claim of which nothing came that others could use: those who wait claim it anew. That somebody waits stays
 * known, or else an answer to the next claim would be told to nobody if it came between two looks.
 */
export async function releaseWithoutResult(redis: Redis, fingerprint: string): Promise<void> {
  await redis.hdel(keyOf(fingerprint), "asker", "answer");
}

/**
 * Tells those who wait what came of a claim. An answer is also told to whoever comes within `keepMs`; a failure only to
 * those who waited for this very claim.
 */
export async function publishResult(
  redis: Redis,
  fingerprint: string,
  { answer, atMs, token, keepMs }: { answer: EngineAnswer; atMs: number; token: string; keepMs: number },
): Promise<void> {
  const key = keyOf(fingerprint);
  const text = JSON.stringify(answer);
  const at = String(Math.floor(atMs));
  const fields = answer.ok ? { answer: text, at } : { failure: text, failedBy: token, at };
  const lifeMs = answer.ok ? Math.max(keepMs, toldMs) : toldMs;
  await redis.multi().del(key).hset(key, fields).pexpire(key, lifeMs).exec();
}

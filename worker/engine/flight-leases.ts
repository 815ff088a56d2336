import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { z } from "zod";
import { withTimeout } from "../../shared/concurrency/wait-for.ts";
import { parseJson } from "../providers/sanitize.ts";
import { Script } from "../../shared/redis/script.ts";
import { result } from "../../shared/results.ts";
import type { SlotClaim, SlotClaims } from "../providers/policies/attempt.ts";
import { type EngineAnswer, engineErrors } from "./google-engine.ts";

/**
 * The flights of all workers in Redis: a record for each query that is being searched, so that equal searches find each
 * other. A record may be lost at any time; then more than one worker calls the providers. It is in one of these states:
 *
 * - **absent**: no worker searches. The next worker acquires the lease, with the job that it takes or afterwards: *held*.
 * - **held** (`holder`, the holder's token): the holder renews the lease every 600 ms until it publishes: *published*. If
 *   no worker waits and nothing is to be cached, it releases the lease instead: *absent*. If its search failed for lack of
 *   time, it releases the lease without a result: *released*. If it dies, the lease expires after 2 s: *absent*. If it only
 *   stalled that long, it leaves the lease of the next holder alone. Workers that find the lease held set `awaited` and poll.
 *   The answer of an earlier flight stays beside it, for the workers that waited for that one.
 *   They leave the claim of a search there (`organizationId`, `openSearches`), which the holder takes with its next renewal.
 * - **released** (at most `awaited`): the next worker acquires the lease. `awaited` stays set.
 * - **published** (`answer` or `failure` with `failedBy`, and `at`): stays for 5 s, a cached answer for
 *   SEARCH_CACHE_SECONDS. Workers that accept an answer of that age get it. A failure is only for the workers that
 *   waited for this lease. Any other worker acquires the lease: *held*.
 *
 * The names of key and fields are the protocol between the workers of a rolling upgrade.
 */

const leaseMs = 2_000;
const renewEveryMs = 600;
const releaseWithinMs = 25;
// For waiting workers to poll, and for equal searches that were enqueued in the meantime.
const publishedMs = 5_000;

const acquireScript = new Script("acquireLease", new URL("acquire-lease.lua", import.meta.url));
const releaseScript = new Script("releaseLease", new URL("release-lease.lua", import.meta.url));
const renewScript = new Script("renewLease", new URL("renew-lease.lua", import.meta.url));
const publishScript = new Script("publishFlight", new URL("publish-flight.lua", import.meta.url));

const leaseTaken = readFileSync(new URL("lease-taken.lua", import.meta.url), "utf8");

const trace = z.object({
  provider: z.string(),
  costMicroUsd: z.number(),
  callsOf: z.string().optional(),
  flight: z.string(),
});
const publishedAnswer = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    results: z.array(result),
    totalResultsCount: z.number(),
    trace,
    searchedKeyword: z.string().exactOptional(),
    truncated: z.literal(true).exactOptional(),
  }),
  z.object({ ok: z.literal(false), code: z.enum(engineErrors), details: z.record(z.string(), z.unknown()), trace }),
]);

const acquireReply = z.union([
  z.tuple([z.literal("acquired")]),
  z.tuple([z.literal("held"), z.string()]),
  z.tuple([z.literal("published"), z.string(), z.coerce.number()]),
]);
const renewReply = z
  .tuple([z.string(), z.coerce.number()])
  .transform(([organizationId, openSearches]): SlotClaim => ({ organizationId, openSearches }));
const releaseReply = z.enum(["released", "awaited", "lost"]);

type LeaseAttempt =
  | { kind: "acquired" }
  | { kind: "held"; holder: string }
  /** The answer's trace has no calls: they belong to the search that made them. `atMs` is by Redis' clock. */
  | { kind: "published"; answer: EngineAnswer; flight: string; atMs: number };

const keyOf = (fingerprint: string) => `lease:${fingerprint}`;

/** @param takeScript a script of BullMQ that takes a job. @returns one that also acquires the lease of the job's flight. */
export const acquiringLease = (takeScript: string) =>
  ["local function take(KEYS, ARGV)", takeScript, "end", `local leaseMs = ${leaseMs}`, leaseTaken].join("\n");

/** A lease that was acquired with a job, for the flight that the job's search may start. */
export class TakenLease {
  readonly #redis: Redis;
  readonly #fingerprint: string;
  #token: string | undefined;

  constructor(redis: Redis, fingerprint: string, token: string) {
    this.#redis = redis;
    this.#fingerprint = fingerprint;
    this.#token = token;
  }

  /** The token, for a flight of this query, which releases the lease from now on. Undefined if there is none any more. */
  use(fingerprint: string): string | undefined {
    const token = fingerprint === this.#fingerprint ? this.#token : undefined;
    if (token !== undefined) this.#token = undefined;
    return token;
  }

  /** Releases the lease, unless a flight has it. Never rejects: if Redis does not answer, the lease expires. */
  async release(): Promise<void> {
    const token = this.use(this.#fingerprint);
    if (token !== undefined) await releaseWithoutResult(this.#redis, this.#fingerprint, token).catch(() => undefined);
  }
}

/**
 * Acquires the lease of a flight, or returns its holder or its result.
 * @param options.sinceMs by Redis' clock: older answers are ignored.
 * @param options.awaited the token of the lease that this worker has waited for, whose failure it shares.
 * @param options.claim of the search that waits, if the lease is held.
 * @param options.timeoutMs for the reply of Redis.
 * @throws if Redis does not reply. The lease may have been acquired even so; then it expires.
 */
export async function acquireLease(
  redis: Redis,
  fingerprint: string,
  options: { token: string; sinceMs: number; awaited?: string | undefined; claim: SlotClaim; timeoutMs: number },
): Promise<LeaseAttempt> {
  const { token, sinceMs, awaited = "", claim, timeoutMs } = options;
  const args = [token, leaseMs, sinceMs, awaited, claim.organizationId, claim.openSearches];
  const reply = acquireScript.run(redis, [keyOf(fingerprint)], args);
  const [kind, text = "", atMs = 0] = acquireReply.parse(await withTimeout(timeoutMs, reply));
  if (kind === "acquired") return { kind };
  if (kind === "held") return { kind, holder: text };
  const answer = publishedAnswer.safeParse(parseJson(text)).data;
  if (answer) {
    const { flight, ...made } = answer.trace;
    return { kind, answer: { ...answer, trace: { ...made, calls: [] } }, flight, atMs };
  }
  // For instance published by another version. Without it the next attempt acquires the lease.
  await redis.hdel(keyOf(fingerprint), "answer");
  return { kind: "held", holder: "" };
}

/**
 * Renews a lease until the returned function is called. A process that dies or freezes loses its lease.
 * @param claims of the flight. From one renewal to the next they include the claim that other workers have left before.
 */
export function keepLeaseAlive(
  redis: Redis,
  fingerprint: string,
  token: string,
  claims: Pick<SlotClaims, "join" | "leave">,
): () => void {
  let left: SlotClaim | undefined;
  const renew = async () => {
    const reply = await renewScript.run(redis, [keyOf(fingerprint)], [token, leaseMs]);
    const before = left;
    const now = renewReply.safeParse(reply).data;
    if (now && now.organizationId === before?.organizationId) {
      before.openSearches = now.openSearches;
      return;
    }
    left = now;
    if (now) claims.join(now);
    if (before) claims.leave(before);
  };
  const timer = setInterval(() => void renew().catch(() => undefined), renewEveryMs);
  return () => clearInterval(timer);
}

/**
 * Releases a lease, unless another worker waits for its result: then it stays held until {@link publishResult}. No search waits
 * for it, so after an answer it leaves with the settlement. After a failure it leaves at once: a repeat must not share that.
 */
export async function releaseLease(
  redis: Redis,
  fingerprint: string,
  token: string,
  { after }: { after: "answer" | "failure" },
): Promise<"released" | "awaited" | "lost"> {
  const [keys, args] = [[keyOf(fingerprint)], [token, ""]];
  const reply =
    after === "answer"
      ? releaseScript.runWithNext(redis, keys, args, releaseWithinMs)
      : releaseScript.run(redis, keys, args);
  return releaseReply.parse(await reply);
}

/** Releases a lease without a result, so that a waiting worker can take over. */
export async function releaseWithoutResult(redis: Redis, fingerprint: string, token: string): Promise<void> {
  await releaseScript.run(redis, [keyOf(fingerprint)], [token, "1"]);
}

/**
 * Publishes the result of a flight and so ends the lease, unless another worker holds it by now. Waiting workers poll for the
 * result; an answer also serves searches that arrive within `keepMs`.
 * @param flight.atMs when the answer arrived, by Redis' clock.
 */
export async function publishResult(
  redis: Redis,
  fingerprint: string,
  { answer, atMs, token, keepMs }: { answer: EngineAnswer; atMs: number; token: string; keepMs: number },
): Promise<void> {
  const text = JSON.stringify({ ...answer, trace: { ...answer.trace, flight: token } });
  const at = String(Math.floor(atMs));
  const fields = answer.ok ? ["answer", text, "at", at] : ["failure", text, "failedBy", token, "at", at];
  const ttlMs = answer.ok ? Math.max(keepMs, publishedMs) : publishedMs;
  await publishScript.run(redis, [keyOf(fingerprint)], [token, ttlMs, ...fields]);
}

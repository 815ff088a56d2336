import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../shared/context.ts";
import { throttledWarning } from "../../shared/log.ts";
import type { Query } from "../../shared/query/query.ts";
import { releaseWithoutResult, acquireLease, keepLeaseAlive, publishResult, releaseLease } from "./flight-leases.ts";
import type { EngineAnswer, GoogleEngine } from "./google-engine.ts";
import { hasCacheHeadroom } from "./cache-headroom.ts";

const firstPollMs = 10;
const pollMsMax = 50;
// So long an unreachable Redis is asked again; then each worker asks the providers by itself.
const patienceMs = 1_000;
const replyMsMax = 500;

/** One query that is to be asked. */
export type Asking = {
  query: Query;
  fingerprint: string;
  deadlineAt: number;
  /** By Redis' clock: an answer from before is none. */
  sinceMs: number;
  /** Whether others of this process wait for it: then more may wait in the queue. */
  isJoined: boolean;
};

export type Found = {
  answer: EngineAnswer;
  /** By Redis' clock. */
  atMs: number;
  /** Whether this process asked the providers for it. */
  isOwn: boolean;
  /** Whether it failed for want of time: others may have more. */
  outOfTime: boolean;
};

/**
 * Asks the providers for all workers that want the same at this moment, or waits for the one who does. A worker that
 * dies meanwhile loses its claim within two seconds, and one of those who wait asks.
 */
export function openDistributedSingleFlight(
  context: Context,
  google: GoogleEngine,
): (asking: Asking) => Promise<Found> {
  const { redis, clock, log, metrics } = context;
  const keepMs = context.config.SEARCH_CACHE_SECONDS * 1_000;
  const warn = throttledWarning(log, "equal searches cannot find each other in Redis");
  const failed = (error: unknown): undefined => {
    metrics.backgroundErrors.inc({ where: "claims" });
    warn(error);
    return undefined;
  };

  const ask = async ({ query, deadlineAt }: Asking): Promise<Found> => {
    const answer = await google.search(query, deadlineAt - performance.now());
    return { answer, atMs: clock.nowMs(), isOwn: true, outOfTime: !answer.ok && answer.outOfTime === true };
  };

  const publish = async ({ fingerprint, isJoined }: Asking, token: string, { answer, atMs, outOfTime }: Found) => {
    if (outOfTime) return releaseWithoutResult(redis, fingerprint);
    const isKept = answer.ok && keepMs > 0 && (await hasCacheHeadroom(redis));
    if (!isKept && !isJoined && !(await releaseLease(redis, fingerprint, token))) return;
    await publishResult(redis, fingerprint, { answer, atMs, token, keepMs: isKept ? keepMs : 0 });
  };

  const askForAll = async (asking: Asking, token: string): Promise<Found> => {
    const letGo = keepLeaseAlive(redis, asking.fingerprint);
    const found = await ask(asking);
    // The search itself does not wait for it.
    void publish(asking, token, found).catch(failed).finally(letGo);
    return found;
  };

  return async (asking) => {
    const token = randomUUID();
    let awaited: string | undefined;
    let pauseMs = firstPollMs;
    let patientUntil = performance.now() + patienceMs;
    for (;;) {
      const leftMs = asking.deadlineAt - performance.now();
      if (leftMs <= 0) return { answer: waitedInVain, atMs: clock.nowMs(), isOwn: false, outOfTime: true };
      const wanted = { token, sinceMs: asking.sinceMs, awaited, msMax: Math.min(replyMsMax, leftMs) };
      const known = await acquireLease(redis, asking.fingerprint, wanted).catch(failed);
      if (known?.kind === "yours") return askForAll(asking, token);
      if (known?.kind === "told") return { answer: known.answer, atMs: known.atMs, isOwn: false, outOfTime: false };
      if (!known && performance.now() > patientUntil) return ask(asking);
      if (known) {
        awaited = known.by;
        patientUntil = performance.now() + patienceMs;
      }
      await sleep(Math.min(pauseMs, leftMs));
      pauseMs = Math.min(pauseMs * 1.5, pollMsMax);
    }
  };
}

export const waitedInVain: EngineAnswer = {
  ok: false,
  code: "engine_timeout",
  details: {},
  trace: { provider: "none", calls: [], costMicroUsd: 0 },
  outOfTime: true,
};

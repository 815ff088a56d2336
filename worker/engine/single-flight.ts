import { setTimeout as sleep } from "node:timers/promises";
import type { AnswerSource } from "../../shared/queue/replies.ts";
import type { Context } from "../../shared/context.ts";
import { type Query, queryFingerprint } from "../../shared/query/query.ts";
import { type Asking, type Found, openDistributedSingleFlight, waitedInVain } from "./distributed-single-flight.ts";
import type { EngineAnswer, GoogleEngine } from "./google-engine.ts";

export type EngineSearch = {
  query: Query;
  remainingMs: number;
  /** By Redis' clock. */
  enqueuedAtMs: number;
};

export type SourcedAnswer = EngineAnswer & { from: AnswerSource };

export type Engine = {
  /** Never throws, and returns within the time that is left, give or take a few milliseconds. */
  search: (search: EngineSearch) => Promise<SourcedAnswer>;
};

/**
 * Equal searches that run at the same moment ask the providers once, whichever workers have them; each is settled on its
 * own, as if it had asked. A search is given another one's answer only if that came after it was enqueued itself, or
 * within SEARCH_CACHE_SECONDS before. Failures are shared with those who waited for them, and with nobody else.
 */
export function openSingleFlight(context: Context, google: GoogleEngine): Engine {
  const { config, metrics } = context;
  const askForAll = openDistributedSingleFlight(context, google);
  const running = new Map<string, { asking: Asking; found: Promise<Found> }>();

  /** What another search has paid for costs this one nothing, and that is counted. */
  const sourced = ({ answer, atMs }: Found, enqueuedAtMs: number, isOwn: boolean): SourcedAnswer => {
    const from: AnswerSource = isOwn ? "provider" : atMs >= enqueuedAtMs ? "shared" : "cache";
    if (answer.ok) metrics.searchesAsked.inc({ from });
    if (isOwn) return { ...answer, from };
    const { provider, costMicroUsd } = answer.trace;
    if (answer.ok) metrics.providerCostSavedMicroUsd.inc({ from }, costMicroUsd);
    return { ...answer, from, trace: { provider, calls: [], costMicroUsd: 0 } };
  };

  const search = async ({ query, remainingMs, enqueuedAtMs }: EngineSearch): Promise<SourcedAnswer> => {
    const deadlineAt = performance.now() + remainingMs;
    const sinceMs = enqueuedAtMs - config.SEARCH_CACHE_SECONDS * 1_000;
    // The target domain only picks from the answer.
    const { targetDomain: _, ...whole } = query;
    const fingerprint = queryFingerprint(whole);
    for (;;) {
      const other = running.get(fingerprint);
      if (!other) {
        const asking: Asking = { query: whole, fingerprint, deadlineAt, sinceMs, isJoined: false };
        const found = askForAll(asking);
        running.set(fingerprint, { asking, found });
        const own = await found.finally(() => running.delete(fingerprint));
        return sourced(own, enqueuedAtMs, own.isOwn);
      }
      other.asking.isJoined = true;
      const found = await foundBefore(deadlineAt, other.found);
      if (!found) return { ...waitedInVain, from: "shared" };
      // Whoever asked may have had less time than this one, or been content with an older answer.
      if (!found.outOfTime && found.atMs >= sinceMs) return sourced(found, enqueuedAtMs, false);
    }
  };
  return { search };
}

async function foundBefore(deadlineAt: number, asked: Promise<Found>): Promise<Found | undefined> {
  const over = new AbortController();
  const late = sleep(Math.max(0, deadlineAt - performance.now()), undefined, { signal: over.signal });
  try {
    return await Promise.race([asked, late.catch(() => undefined)]);
  } finally {
    over.abort();
  }
}

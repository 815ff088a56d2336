import { setTimeout as sleep } from "node:timers/promises";
import { type Attempt, cancelAttempt } from "./attempt.ts";
import type { ProviderClient } from "./provider-client.ts";

/**
 * Whether a second attempt may start at this provider while the first one is slow. Only if it would start at once and the
 * provider has retry budget left, which this takes. Otherwise failover checks again at the next tick.
 */
export function mayHedge(next: Pick<ProviderClient, "availability" | "reserveHedge"> | undefined): boolean {
  return next?.availability() === "ready" && next.reserveHedge();
}

/** Waits for a result, but not longer than until a hedge is due. */
export async function resultOrHedgeDue<T>(result: Promise<T>, hedgeAfterMs: number): Promise<T | "hedge_due"> {
  const timer = new AbortController();
  const due = sleep(hedgeAfterMs, "hedge_due" as const, { signal: timer.signal }).catch(() => "hedge_due" as const);
  try {
    return await Promise.race([result, due]);
  } finally {
    timer.abort();
  }
}

/**
 * Cancels all attempts but the first one that has a page. Attempts that started earlier were slower, which counts against
 * their providers (`outrun`); attempts that started later had less time, which does not (`unneeded`).
 * @param running in the order in which they started.
 */
export function cancelLosers(winner: Attempt, running: Iterable<Attempt>): void {
  let kind: "outrun" | "unneeded" = "outrun";
  for (const attempt of running) {
    if (attempt === winner) kind = "unneeded";
    else cancelAttempt(attempt, kind);
  }
}

import type { Attempt } from "../../faults/audit/evidence.ts";

/** A search that takes longer was not answered at once. A provider call takes a twentieth of it. */
const promptMsMax = 1_000;

const isPrompt = ({ answer, sentAtMs, endedAtMs }: Attempt): boolean =>
  answer?.status === 200 && endedAtMs - sentAtMs <= promptMsMax;

/** Whether a search is answered at once, or may still be. */
export const mayBePrompt = (attempt: Attempt, nowMs: number): boolean =>
  attempt.endedAtMs > nowMs ? nowMs - attempt.sentAtMs <= promptMsMax : isPrompt(attempt);

/**
 * For how long searches were not answered at once: from the first such search to the first one from which on each of them is.
 * A search counts in the window in which it ended, and from the window's beginning.
 * @param attempts in the order in which they were sent.
 * @param window.sinceMs where the outage begins instead.
 * @returns undefined if it does not end within the window.
 */
export function outageMsOf(
  attempts: readonly Attempt[],
  window: { fromMs: number; toMs: number; sinceMs?: number | undefined },
): number | undefined {
  const { fromMs, toMs, sinceMs } = window;
  const within = attempts.filter(({ sentAtMs, endedAtMs }) => endedAtMs >= fromMs && sentAtMs < toMs);
  const slow = within.filter((attempt) => attempt.endedAtMs < toMs && !isPrompt(attempt));
  const [first, last] = [slow[0], slow.at(-1)];
  if (!first || !last) return 0;
  const again = within.find(({ sentAtMs }) => sentAtMs > Math.max(last.sentAtMs, fromMs));
  return again && Math.max(0, again.sentAtMs - (sinceMs ?? Math.max(first.sentAtMs, fromMs)));
}

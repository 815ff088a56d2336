import { setTimeout as sleep } from "node:timers/promises";

const pauseFactor = 3;
const pauseSecondsMax = 6 * 3_600;

/** Seconds from the end of an attempt to the next one: after the first `firstSeconds`, then three times as long, 6 h at most. */
export const pauseAfter = (attempts: number, firstSeconds: number): number =>
  Math.min(pauseSecondsMax, firstSeconds * pauseFactor ** (attempts - 1));

/**
 * Runs a step, and again after each failure that `mayRetry` accepts, `pauseMs` later.
 * @throws the first error that `mayRetry` declines.
 */
export async function retryWhile<T>(
  { pauseMs, mayRetry }: { pauseMs: number; mayRetry: (error: unknown) => boolean },
  step: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!mayRetry(error)) throw error;
    }
    await sleep(pauseMs);
  }
}

/**
 * Runs a step until it succeeds or a failure occurs after `giveUpAtMs`, a time of `performance.now()`. Never rejects.
 * @param options.onError sees every failure, the last one included.
 */
export async function retryUntil(
  options: { giveUpAtMs: number; pauseMs: number; onError: (error: unknown) => void },
  step: () => Promise<void>,
): Promise<void> {
  const mayRetry = (error: unknown) => {
    options.onError(error);
    return performance.now() < options.giveUpAtMs;
  };
  return retryWhile({ pauseMs: options.pauseMs, mayRetry }, step).catch(() => undefined);
}

import { ConstantBackoff, handleWhen, retry } from "cockatiel";

/**
 * Runs a step, and again after each failure that `mayRetry` accepts, `pauseMs` later.
 * @throws the first error that `mayRetry` declines.
 */
export function retryWhile<T>(
  options: { pauseMs: number; mayRetry: (error: unknown) => boolean },
  step: () => Promise<T>,
): Promise<T> {
  const policy = retry(handleWhen(options.mayRetry), {
    maxAttempts: Number.POSITIVE_INFINITY,
    backoff: new ConstantBackoff(options.pauseMs),
  });
  return policy.execute(step);
}

/**
 * Runs a step until it succeeds or a failure occurs after `giveUpAtMs`, a time of `performance.now()`.
 * @param options.onError sees every failure, the last one included.
 * @returns whether the step succeeded.
 */
export async function retryUntil(
  options: { giveUpAtMs: number; pauseMs: number; onError: (error: unknown) => void },
  step: () => Promise<void>,
): Promise<boolean> {
  const mayRetry = (error: unknown) => {
    options.onError(error);
    return performance.now() < options.giveUpAtMs;
  };
  return retryWhile({ pauseMs: options.pauseMs, mayRetry }, step).then(
    () => true,
    () => false,
  );
}

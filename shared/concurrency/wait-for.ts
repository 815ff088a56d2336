/** How a wait ended: with the promise's value, at the timeout, or because the signal was aborted. */
type WaitOutcome<T> = { ended: "done"; value: T } | { ended: "timed_out" | "aborted" };

/**
 * Waits for a promise, but not beyond a timeout or an abort. Only the wait ends: the work behind the promise continues.
 * @throws what the promise rejects with.
 */
export function waitFor<T>(
  promise: Promise<T>,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<WaitOutcome<T>> {
  // Each search waits several times, and a race would make three more promises each time.
  return new Promise((resolve, reject) => {
    const release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const end = (outcome: WaitOutcome<T>) => {
      release();
      resolve(outcome);
    };
    const abort = () => end({ ended: "aborted" });
    const timer = setTimeout(() => end({ ended: "timed_out" }), Math.max(0, timeoutMs));
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    const fail = (error: unknown) => {
      release();
      reject(error);
    };
    promise.then((value) => end({ ended: "done", value }), fail);
  });
}

/** Waits for a promise. @throws {Error} at the timeout; whether the promise's work was done is unknown then. */
export async function withTimeout<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  const outcome = await waitFor(promise, { timeoutMs });
  if (outcome.ended === "done") return outcome.value;
  throw new Error(`timed out after ${timeoutMs} ms`);
}

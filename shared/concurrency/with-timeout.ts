/** How a wait ended: with the promise's value, at the timeout, or because the signal was aborted. */
export type WaitOutcome<T> = { ended: "done"; value: T } | { ended: "timed_out" | "aborted" };

/**
 * Waits for a promise, but not beyond a timeout or an abort. Only the wait ends: the work behind the promise continues.
 * @throws what the promise rejects with.
 */
export async function waitFor<T>(
  promise: Promise<T>,
  bounds: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<WaitOutcome<T>> {
  const { signal } = bounds;
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  const bound = new Promise<WaitOutcome<T>>((resolve) => {
    timer = setTimeout(() => resolve({ ended: "timed_out" }), Math.max(0, bounds.timeoutMs));
    onAbort = () => resolve({ ended: "aborted" });
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise.then((value): WaitOutcome<T> => ({ ended: "done", value })), bound]);
  } finally {
    clearTimeout(timer);
    if (onAbort) signal?.removeEventListener("abort", onAbort);
  }
}

/** Waits for a promise. @throws {Error} at the timeout; whether the promise's work was done is unknown then. */
export async function withTimeout<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  const outcome = await waitFor(promise, { timeoutMs });
  if (outcome.ended === "done") return outcome.value;
  throw new Error(`timed out after ${timeoutMs} ms`);
}

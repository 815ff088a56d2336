/** Waits for a promise, but no longer than the bound. @throws {Error} when the bound passes first. */
export async function withTimeout<T>(boundMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${boundMs} ms`)), boundMs);
  });
  try {
    return await Promise.race([promise, bound]);
  } finally {
    clearTimeout(timer);
  }
}

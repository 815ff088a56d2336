import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";

const pauseMs = 100;

/**
 * Does something, and connects to Postgres again and again meanwhile. The longest time tells whether the machine was so busy that
 * the service's own timeouts say nothing about the service.
 * @returns its result, and the longest time that a new connection and a query on it took, in ms.
 * @throws what it throws, or why Postgres could not be reached.
 */
export async function besidePostgres<T>(
  url: string,
  something: () => Promise<T>,
): Promise<{ value: T; longestMs: number }> {
  const over = new AbortController();
  const working = something().finally(() => over.abort());
  const [value, longestMs] = await Promise.all([working, longestConnectionMs(url, over.signal)]);
  return { value, longestMs };
}

async function longestConnectionMs(url: string, over: AbortSignal): Promise<number> {
  let longestMs = 0;
  do {
    const client = new Client(url);
    const beganAtMs = performance.now();
    try {
      await client.connect();
      await client.query("select 1");
    } finally {
      await client.end();
    }
    longestMs = Math.max(longestMs, performance.now() - beganAtMs);
    await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined);
  } while (!over.aborted);
  return longestMs;
}

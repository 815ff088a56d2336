import { setTimeout as sleep } from "node:timers/promises";

const boundMsMax = 120_000; // Only a failing test waits this long; a busy machine needs less.
// A pause is a tenth of the wait so far: who waits for long asks rarely, and is late by a tenth at most.
const pauseMsMin = 20;
const pauseMsMax = 250;

/**
 * Polls until `isTrue` resolves to true. A rejection counts as false. The last try begins after `boundMs`, so that one that takes long on a
 * slow machine is not the last because of that. @returns whether it did.
 */
export async function becomes(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<boolean> {
  const startedAtMs = performance.now();
  for (;;) {
    const waitedMs = performance.now() - startedAtMs;
    if (await isTrue().catch(() => false)) return true;
    if (waitedMs > boundMs) return false;
    await sleep(Math.min(Math.max(waitedMs / 10, pauseMsMin), pauseMsMax));
  }
}

/** Polls until `isTrue` resolves to true. @throws after `boundMs`. */
export async function eventually(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<void> {
  if (!(await becomes(isTrue, boundMs))) throw new Error(`not true within ${boundMs} ms: ${isTrue.toString()}`);
}

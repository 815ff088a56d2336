import { setTimeout as sleep } from "node:timers/promises";

const boundMsMax = 120_000; // Only a failing test waits this long; a busy machine needs less.
const pollMs = 20;

/**
 * Polls until `isTrue` resolves to true. A rejection counts as false. The last try begins after `boundMs`, so that one that takes long on a
 * slow machine is not the last because of that. @returns whether it did.
 */
export async function becomes(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<boolean> {
  const giveUpAtMs = performance.now() + boundMs;
  for (;;) {
    const isLast = performance.now() > giveUpAtMs;
    if (await isTrue().catch(() => false)) return true;
    if (isLast) return false;
    await sleep(pollMs);
  }
}

/** Polls until `isTrue` resolves to true. @throws after `boundMs`. */
export async function eventually(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<void> {
  if (!(await becomes(isTrue, boundMs))) throw new Error(`not true within ${boundMs} ms: ${isTrue.toString()}`);
}

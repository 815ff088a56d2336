import { setTimeout as sleep } from "node:timers/promises";

const boundMsMax = 120_000; // Only a failing test waits this long; a busy machine needs less.
const pollMs = 20;

/** Polls until `isTrue` resolves to true or `boundMs` has passed. A rejection counts as false. @returns whether it did. */
export async function becomes(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<boolean> {
  const giveUpAtMs = performance.now() + boundMs;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > giveUpAtMs) return false;
    await sleep(pollMs);
  }
  return true;
}

/** Polls until `isTrue` resolves to true. @throws after `boundMs`. */
export async function eventually(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<void> {
  if (!(await becomes(isTrue, boundMs))) throw new Error(`not true within ${boundMs} ms: ${isTrue.toString()}`);
}

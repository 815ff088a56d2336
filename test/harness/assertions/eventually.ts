import { setTimeout as sleep } from "node:timers/promises";

const boundMsMax = 120_000; // Only a test that fails waits so long; a busy machine needs a part of it.
const pollMs = 20;

/** Whether the answer becomes yes within the bound, in milliseconds; a question that throws counts as no. */
export async function becomes(isTrue: () => Promise<boolean>, boundMs: number): Promise<boolean> {
  const giveUpAtMs = performance.now() + boundMs;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > giveUpAtMs) return false;
    await sleep(pollMs);
  }
  return true;
}

/** Asks again until the answer is yes. @throws when it never is. */
export async function eventually(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<void> {
  if (!(await becomes(isTrue, boundMs))) throw new Error(`not true within ${boundMs} ms: ${isTrue.toString()}`);
}

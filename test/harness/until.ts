import { setTimeout as sleep } from "node:timers/promises";

const boundMsMax = 15_000;
const pollMs = 20;

/** Asks again until the answer is yes; a question that throws counts as no. @throws when it never is. */
export async function until(isTrue: () => Promise<boolean>, boundMs = boundMsMax): Promise<void> {
  const giveUpAtMs = performance.now() + boundMs;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > giveUpAtMs) throw new Error(`not true within ${boundMs} ms: ${isTrue.toString()}`);
    await sleep(pollMs);
  }
}

import { setTimeout as sleep } from "node:timers/promises";

// Many wait at the same time, and the machine is for those that they wait for.
const pollMs = 50;

/** Whether it becomes true within the bound, in milliseconds; a question that throws counts as no. */
export async function becomes(isTrue: () => Promise<boolean>, boundMs: number): Promise<boolean> {
  const giveUpAtMs = performance.now() + boundMs;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > giveUpAtMs) return false;
    await sleep(pollMs);
  }
  return true;
}

import { setTimeout as sleep } from "node:timers/promises";
import { seesWorkers } from "../../harness/assertions/metrics.ts";
import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { exchange } from "../callers/connection.ts";
import { post } from "../callers/requests.ts";
import { outcomeOf } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { judgeGrowth, MemoryWatch } from "../judges/memory.ts";
import { commitsOf } from "../judges/transactions.ts";

const connections = 64;
const grownBytesMax = 250 * 1_048_576;
// Covers new connections of the API, and maintenance that happens to do more during the flood, which is much beside a few events.
const commitsShareMax: Record<Strength, number> = { quick: 0.5, full: 0.1 };
const events: Record<Strength, number> = { quick: 100, full: 20_000 };
const largestBytes = 64 * 1_024;

/** Forged events: signatures of the right form, of many parts or absent; bodies of the maximum size, or larger. */
const shapes = [
  { signature: "t=1,v1=0", bytes: largestBytes - 100 },
  { signature: `t=${Math.floor(Date.now() / 1_000)},v1=${"0".repeat(64)}`, bytes: largestBytes - 100 },
  { signature: `t=1${",v1=0".repeat(1_000)}`, bytes: 1_000 },
  { signature: "t=1,v1=0", bytes: 10 * largestBytes },
  { signature: "", bytes: largestBytes - 100 },
];

/** Thousands of events that Stripe did not send. */
export const signatureFlood: Attack = {
  name: "signature-flood",
  tried: `Stripe's webhook with bad signatures and bodies of ${largestBytes / 1_024} kB and more, on ${connections} connections`,
  stack: { payments: true },
  run: async (stack, strength) => {
    const outcomes: string[] = [];
    const beganAtMs = performance.now();
    const commits = await commitsDuring(stack, async () => {
      outcomes.push(...(await flood(stack, events[strength])));
    });
    const floodMs = performance.now() - beganAtMs;
    // Maintenance and automatic top-ups query Postgres every second, also without events.
    const idleCommits = await commitsDuring(stack, () => sleep(floodMs));
    const share = (commits - idleCommits) / outcomes.length;
    await stack.service.until(() => seesWorkers(stack.api));
    const memory = new MemoryWatch(stack.api);
    const honest = await judgeHonestBeside(stack, async () => {
      outcomes.push(...(await flood(stack, events[strength])));
    });
    return [
      {
        promised: "each is refused, and none begins a transaction in Postgres",
        seen: `${tally(outcomes)}; ${commits} transactions, and ${idleCommits} in the same time without events`,
        held: share <= commitsShareMax[strength] && outcomes.every((outcome) => /^(400 |closed)/.test(outcome)),
      },
      judgeGrowth(memory.stop(), grownBytesMax),
      honest,
    ];
  },
};

/** @returns how many transactions Postgres committed meanwhile. */
async function commitsDuring(stack: AttackStack, work: () => Promise<void>): Promise<number> {
  const before = await commitsOf(stack);
  await work();
  return (await commitsOf(stack)) - before;
}

/** @returns how the events were answered. */
const flood = ({ apiUrl: url }: AttackStack, count: number): Promise<string[]> =>
  callEach(count, connections, async (n) => {
    const { signature, bytes } = shapes[n % shapes.length] ?? { signature: "", bytes: 0 };
    const event = { type: "checkout.session.completed", padding: "x".repeat(bytes) };
    const sent = post({ url, token: "none" }, "/stripe/webhook", event, { "stripe-signature": signature });
    const [response] = await exchange(url, [sent]);
    return response ? outcomeOf(response) : "closed";
  });

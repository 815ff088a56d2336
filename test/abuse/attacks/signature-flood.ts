import { setTimeout as sleep } from "node:timers/promises";
import { seesWorkers } from "../../harness/assertions/metrics.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { post } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { inMb, MemoryWatch } from "../judges/memory.ts";
import { commitsOf } from "../judges/transactions.ts";

const connections = 64;
const idleMs = 60_000;
const grownBytesMax = 250 * 1_048_576;
// The start of an API, and maintenance that happens to need more than while nothing is sent.
const commitsShareMax = 0.1;
const events: Record<Strength, number> = { quick: 600, full: 20_000 };
const largestBytes = 64 * 1_024;

/** What is wrong with an event: its signature has the right form; its body is as large as one may be, or larger. */
const shapes = [
  { signature: "t=1,v1=0", bytes: largestBytes - 100 },
  { signature: `t=${Math.floor(Date.now() / 1_000)},v1=${"0".repeat(64)}`, bytes: largestBytes - 100 },
  { signature: `t=1${",v1=0".repeat(1_000)}`, bytes: 1_000 },
  { signature: "t=1,v1=0", bytes: 10 * largestBytes },
  { signature: "", bytes: largestBytes - 100 },
];

/** Events that Stripe did not send, by the thousand. */
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
    // Maintenance and automatic top-ups look into Postgres every second, whatever is sent.
    const idleCommits = await commitsDuring(stack, () => sleep(floodMs));
    const share = (commits - idleCommits) / outcomes.length;
    const { service } = stack;
    const [api] = service.apis;
    if (!api) throw new Error("there is no API");
    await service.until(() => seesWorkers(api));
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const memory = new MemoryWatch(api);
    const answers = await honestBeside(stack, honest, async () => {
      outcomes.push(...(await flood(stack, events[strength])));
    });
    memory.stop();
    return [
      {
        promised: "each is refused, and none begins a transaction in Postgres",
        seen: `${tally(outcomes)}; ${commits} transactions, and ${idleCommits} in the same time without events`,
        held: share <= commitsShareMax && outcomes.every((outcome) => /^(400 |closed)/.test(outcome)),
      },
      {
        promised: `the API's memory grows by at most ${inMb(grownBytesMax)} MB`,
        seen: memory.toString(),
        held: memory.grownBytes <= grownBytesMax,
      },
      judgeHonest(answers),
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
async function flood({ apiUrl: url }: AttackStack, count: number): Promise<string[]> {
  const outcomes: string[] = [];
  let sent = 0;
  const send = async () => {
    const { signature, bytes } = shapes[sent++ % shapes.length] ?? { signature: "", bytes: 0 };
    const connection = await Connection.open(url);
    const event = { type: "checkout.session.completed", padding: "x".repeat(bytes) };
    connection.send(post({ url, token: "none" }, "/stripe/webhook", event, { "stripe-signature": signature }));
    const whole = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
    await connection.readUntil(() => whole().length > 0, idleMs);
    connection.reset();
    outcomes.push(whole().map(outcomeOf)[0] ?? "closed");
  };
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (outcomes.length < count) await send();
    }),
  );
  return outcomes;
}

import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Exposition } from "../../harness/assertions/metrics.ts";
import type { Say } from "../report.ts";
import { Callers, keywordOf, placeOf } from "./callers.ts";
import { check, type Verdict } from "./check.ts";
import { BackgroundTraffic } from "./background-traffic.ts";
import type { FaultName } from "./faults.ts";
import { type PlannedFault, planOf } from "./plan.ts";
import { mend, injectFaults } from "./inject-faults.ts";
import { Cluster } from "./cluster.ts";

const quietMsMax = 60_000;
const warmUpMs = 1_000;
const afterwards = 50;
const finalProviderMs = 30;

export interface SeedResult extends Verdict {
  seed: number;
  searches: number;
  faults: PlannedFault[];
  /** Answers by status, and "none". */
  answers: Record<string, number>;
  /** From the last fault's end until nothing was in flight. */
  quietMs: number;
  /** How often the books were verified while searches ran. */
  verified: number;
  /** How long the process that drives all this was kept from running, at most. */
  hesitationMs: number;
}

/**
 * One seed: searches under faults, then everything is mended, comes to rest, and is checked. The seed fixes what is asked
 * and what is done to the service, and when; what the machine's scheduler makes of it is another thing each time.
 */
export async function runSeed(options: {
  seed: number;
  searches: number;
  only?: FaultName | undefined;
  /** How long after its deadline an answer may come, and how long a search may take once all is well. */
  lateMsMax?: number;
  say: Say;
}): Promise<SeedResult> {
  const { seed, searches, only, lateMsMax = 2_000, say } = options;
  const plan = planOf(seed, searches, only);
  const latencyMsOf = (keyword: string) => plan.searches[placeOf(keyword)]?.providerMs ?? finalProviderMs;
  const world = await Cluster.open({ latencyMsOf });
  const callers = new Callers(world);
  const hesitation = monitorEventLoopDelay();
  hesitation.enable();
  try {
    const errands = new BackgroundTraffic(world);
    const stop = new AbortController();
    const background = errands.run(plan.background, stop.signal);
    const stormy = sleep(warmUpMs).then(() => injectFaults(world, plan.faults, stop.signal, say));
    await callers.run(plan.searches, (done) => {
      if (done % 100 === 0) say(`  ${done} of ${searches} searches`);
    });
    stop.abort();
    const faults = await stormy;
    await mend(world);
    await background;

    const beganMs = performance.now();
    const restless = await comeToRest(world);
    const quietMs = performance.now() - beganMs;
    const owed = await collect(callers, searches);
    const living = await searchAfterwards(world, callers, lateMsMax);
    const verdict = await check(world, callers.attempts, lateMsMax + hesitation.max / 1e6);
    const { violations } = await world.service.verify();
    const broken = [
      ...verdict.broken,
      ...errands.wrong,
      ...restless,
      ...owed,
      ...living,
      ...violations.map(({ rule, subject, found }) => `${rule}: ${subject}: ${found}`),
      ...world.slots.flatMap((slot) => slot.accidents()),
      ...defects(world),
      ...(await drift(world)),
    ];
    return {
      ...verdict,
      seed,
      searches,
      faults,
      quietMs,
      verified: errands.verified,
      hesitationMs: hesitation.max / 1e6,
      broken,
      answers: tally(callers),
    };
  } finally {
    hesitation.disable();
    await callers.close();
    await world.close();
  }
}

/**
 * Waits until nothing is in flight; charges that nobody confirmed are made old, so that they are given back now.
 * @returns what never came to rest.
 */
async function comeToRest(world: Cluster): Promise<string[]> {
  const { service } = world;
  const isIdle = async () => {
    const { active = 0, waiting = 0 } = await world.queue.getJobCounts("active", "waiting");
    if (active + waiting > 0) return false;
    const holds = await Promise.all(world.customers.map(({ organizationId }) => service.holdsOf(organizationId)));
    return holds.every(({ open, heldMils }) => open <= 0 && heldMils === 0);
  };
  try {
    await service.until(isIdle, quietMsMax);
    await sleep(1_000); // The living APIs confirm what they delivered.
    await service.age();
    await service.rest();
    return [];
  } catch (error) {
    return [`it did not come to rest: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** What was paid under a key has to be there for whoever asks again. */
async function collect(callers: Callers, searches: number): Promise<string[]> {
  const open = Map.groupBy(
    callers.attempts.filter(({ key }) => key !== undefined),
    ({ key }) => key,
  );
  const unanswered = [...open.values()].filter((same) => same.every(({ answer }) => answer?.status !== 200));
  const found = await Promise.all(
    unanswered.map(async ([first]) => {
      if (!first || placeOf(first.keyword) >= searches) return [];
      const { answer, keyword, noAnswer } = await callers.untilAnswered(first);
      const isAnswer = answer?.status === 200 || (answer?.status === 402 && first.customer.kind !== "rich");
      return isAnswer || answer?.status === 429 ? [] : [`"${keyword}" asked once more: ${answer?.text ?? noAnswer}`];
    }),
  );
  return found.flat();
}

/** Once all is well, searches are answered, and soon. */
async function searchAfterwards(world: Cluster, callers: Callers, msMax: number): Promise<string[]> {
  const rich = world.customers.filter(({ kind }) => kind === "rich");
  const found = await Promise.all(
    Array.from({ length: afterwards }, async (_, n) => {
      const customer = rich[n % rich.length];
      if (!customer) return [];
      const api = n % 2 === 0 ? 0 : 1;
      const attempt = await callers.send({ customer, keyword: keywordOf(1_000_000 + n), key: undefined, api });
      const { answer, noAnswer, sentAtMs, endedAtMs } = attempt;
      const ms = Math.round(endedAtMs - sentAtMs);
      if (answer?.status !== 200) return [`a search after all was mended: ${answer?.text ?? noAnswer}`];
      return ms > msMax ? [`a search after all was mended took ${ms} ms`] : [];
    }),
  );
  const isAtRest = await world.service.rest().then(
    () => true,
    () => false,
  );
  return isAtRest ? found.flat() : [...found.flat(), "the searches after all was mended did not come to rest"];
}

/** What a process called an error of its own, or did not catch. */
function defects(world: Cluster): string[] {
  return world.slots.flatMap((slot) =>
    slot.processes
      .flatMap((process) => process.errors)
      .map((line) => `${slot.name} logged an error: ${JSON.stringify(line).slice(0, 600)}`),
  );
}

/** The reconciler's own figure, once it has looked at everything. */
async function drift(world: Cluster): Promise<string[]> {
  await sleep(2_500); // Two of its rounds.
  const expositions = await Promise.all(
    world.workers.map(async (slot) => Exposition.of({ opsUrl: await slot.opsUrl() })),
  );
  const told = expositions.flatMap((exposition) => exposition.value("ledger_drift_mils") ?? []);
  if (told.length === 0) return ["no worker measures the drift"];
  return told.every((mils) => mils === 0) ? [] : [`ledger_drift_mils is ${told.join(" and ")}`];
}

function tally({ attempts }: Callers): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { answer, noAnswer } of attempts) {
    const outcome = answer ? String(answer.status) : (noAnswer ?? "none");
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

import { setTimeout as sleep } from "node:timers/promises";
import { callEach, type CallerAnswer, keepInFlight } from "../../faults/scenarios/callers.ts";
import { quantile, tally } from "../../faults/scenarios/statistics.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const timesMax = 3;
const judgedShare = 0.99;
const creditMils = 10_000_000;
const callersPerAttacker = 30;
const callersMin = 60;
// The attackers ignore Retry-After. They pause a little because they share the machine with the service.
const pauseAfterRefusalMs = 100;
const startsMs = 1_000;

/** The size of an attack on one concurrency limit. */
interface Force {
  providerMs: number;
  attackers: readonly number[];
  depths: readonly number[];
  searches: number;
}

const crowded = (
  name: string,
  limit: string,
  settings: Record<string, string>,
  { providerMs, attackers, depths, searches }: Force,
): Attack => ({
  name,
  tried: `1, 3 and 10 organizations with ${callersPerAttacker} callers each, at least ${callersMin}, beside one with one caller: two workers, ${limit}`,
  stack: { workers: 2, settings },
  run: async (stack) => {
    stack.provider.otherwise = delayed(providerMs);
    const findings: Finding[] = [];
    for (const depth of depths)
      for (const count of attackers) findings.push(await crowd(stack, { attackers: count, depth, searches }));
    return findings;
  },
});

/** Many organizations occupy all slots of a provider that has few. */
export const crowdedFixedLimit = crowded(
  "crowded-fixed-limit",
  "4 calls at once each",
  { SERPER_CONCURRENCY: "4" },
  { providerMs: 400, attackers: [1, 3, 10], depths: [10, 100], searches: 12 },
);

/** The same with workers that discover how many calls the provider takes. */
export const crowdedAdaptiveLimit = crowded(
  "crowded-adaptive-limit",
  "which discover the limit of calls",
  {},
  { providerMs: 2_000, attackers: [1, 3, 10], depths: [10, 100], searches: 8 },
);

interface Crowd {
  attackers: number;
  depth: number;
  searches: number;
}

async function crowd(stack: AttackStack, { attackers, depth, searches }: Crowd): Promise<Finding> {
  const { service } = stack;
  const honest = await service.organization({ creditMils, terms: {} });
  const search = searcher(stack, depth);
  const inTurn = () => callEach(searches, 1, () => search(honest.token));
  await search(honest.token); // Warms up.
  const quiet = await inTurn();
  const tokens: string[] = [];
  for (let made = 0; made < attackers; made += 1)
    tokens.push((await service.organization({ creditMils, terms: {} })).token);
  let isOver = false;
  const theirs: number[] = [];
  const attack = keepInFlight(Math.max(callersMin, attackers * callersPerAttacker), async (caller) => {
    const { status } = await search(tokens[caller % attackers] ?? "");
    if (!isOver) theirs.push(status);
    if (status !== 200) await sleep(pauseAfterRefusalMs);
    return !isOver;
  });
  await sleep(startsMs);
  const beside = await inTurn();
  isOver = true;
  await attack;
  stack.say(`  the attackers: ${tally(theirs)}`);
  return judge({ attackers, depth }, quiet, beside);
}

/** Sends distinct searches. */
function searcher({ callers, apiUrl }: AttackStack, depth: number) {
  let count = 0;
  return (token: string) => {
    count += 1;
    return callers.search(apiUrl, token, { keyword: `crowd ${depth} ${count} ${performance.now()}`, depth });
  };
}

function judge(
  { attackers, depth }: Omit<Crowd, "searches">,
  quiet: readonly CallerAnswer[],
  beside: readonly CallerAnswer[],
): Finding {
  const refused = [...quiet, ...beside].filter(({ status }) => status !== 200);
  const timeOf = (answers: readonly CallerAnswer[]) =>
    quantile(
      answers.map(({ ms }) => ms),
      judgedShare,
    );
  const times = timeOf(beside) / timeOf(quiet);
  return {
    promised: `beside ${attackers}, at depth ${depth}: every search of the one caller is answered, ${judgedShare * 100} of 100 in at most ${timesMax} times as long as without them`,
    seen: [
      `${beside.length - refused.length} of ${beside.length}`,
      `${timeOf(quiet).toFixed(0)} → ${timeOf(beside).toFixed(0)} ms, ${times.toFixed(1)} times`,
      ...(refused.length > 0 ? [tally(refused.map(({ status }) => status))] : []),
    ].join(", "),
    held: refused.length === 0 && times <= timesMax,
  };
}

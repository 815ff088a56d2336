import { setTimeout as sleep } from "node:timers/promises";
import { callEach, type CallerAnswer, keepInFlight } from "../../faults/scenarios/callers.ts";
import { quantile, tally } from "../../faults/scenarios/statistics.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const timesMax = 3;
const judgedShare = 0.99;
const creditMils = 10_000_000;
const callersPerAttacker = 30;
const callersMin = 60;
// The attackers ignore Retry-After. They pause a little because they share the machine with the service.
const pauseAfterRefusalMs = 100;
const startsMs = 1_000;

/** The crowds, one after the other, and how many searches the one caller sends beside each. */
const sizes: Record<Strength, { attackers: readonly number[]; depths: readonly number[]; searches: number }> = {
  quick: { attackers: [3], depths: [10], searches: 3 },
  full: { attackers: [1, 3, 10], depths: [10, 100], searches: 10 },
};

const crowded = (name: string, limit: string, settings: Record<string, string>, providerMs: number): Attack => ({
  name,
  tried: `1, 3 and 10 organizations with ${callersPerAttacker} callers each, at least ${callersMin}, beside one with one caller: two workers, ${limit}`,
  stack: { workers: 2, settings },
  run: async (stack, strength) => {
    stack.provider.otherwise = delayed(providerMs);
    const { searches, ...crowds } = sizes[strength];
    const findings: Finding[] = [];
    for (const depth of crowds.depths)
      for (const attackers of crowds.attackers) {
        const { quiet, beside } = await crowd(stack, { attackers, depth, searches });
        findings.push(judgeAnswers({ attackers, depth }, [...quiet, ...beside]));
        if (strength === "full") findings.push(judgeTimes({ attackers, depth }, quiet, beside));
      }
    return findings;
  },
});

/** Many organizations occupy all slots of a provider that has few. */
export const crowdedFixedLimit = crowded(
  "crowded-fixed-limit",
  "4 calls at once each",
  { SERPER_CONCURRENCY: "4" },
  400,
);

/** The same with workers that discover how many calls the provider takes. */
export const crowdedAdaptiveLimit = crowded("crowded-adaptive-limit", "which discover the limit of calls", {}, 2_000);

interface Crowd {
  attackers: number;
  depth: number;
  searches: number;
}

/** @returns the answers of the one caller without the crowd, and beside it. */
async function crowd(stack: AttackStack, { attackers, depth, searches }: Crowd) {
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
  return { quiet, beside };
}

/** Sends distinct searches. */
function searcher({ callers, apiUrl }: AttackStack, depth: number) {
  let count = 0;
  return (token: string) => {
    count += 1;
    return callers.search(apiUrl, token, { keyword: `crowd ${depth} ${count} ${performance.now()}`, depth });
  };
}

type Size = Omit<Crowd, "searches">;

function judgeAnswers({ attackers, depth }: Size, answers: readonly CallerAnswer[]): Finding {
  const statuses = answers.map(({ status }) => status);
  return {
    promised: `beside ${attackers}, at depth ${depth}: every search of the one caller is answered`,
    seen: tally(statuses),
    held: statuses.every((status) => status === 200),
  };
}

function judgeTimes(
  { attackers, depth }: Size,
  quiet: readonly CallerAnswer[],
  beside: readonly CallerAnswer[],
): Finding {
  const timeOf = (answers: readonly CallerAnswer[]) =>
    quantile(
      answers.map(({ ms }) => ms),
      judgedShare,
    );
  const times = timeOf(beside) / timeOf(quiet);
  return {
    promised: `beside ${attackers}, at depth ${depth}: ${judgedShare * 100} of 100 of its searches take at most ${timesMax} times as long as without them`,
    seen: `${timeOf(quiet).toFixed(0)} → ${timeOf(beside).toFixed(0)} ms, ${times.toFixed(1)} times`,
    held: times <= timesMax,
  };
}

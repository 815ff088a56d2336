import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { startGuardedProcess } from "../../../local/guarded-process.ts";
import type { CallerAnswer } from "../../faults/scenarios/callers.ts";
import { quantile } from "../../faults/scenarios/statistics.ts";
import { summed } from "../../harness/assertions/metrics.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { AttackerOrder } from "../full-strength/attacker.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { inMb, MemoryWatch, redisBytes } from "../judges/memory.ts";
import { judgeCharges } from "../judges/money.ts";

const organizationsCount = 20;
const perSecond = 20;
const providerMs = 50;
const p99TimesMax = 3;
const grownBytesMax = 250 * 1_048_576;
// At first the attacker's process starts, and the API loads code that no request has needed before.
const startsMs = 3_000;
// Only the attacker guesses tokens.
const guesses = 'token_lookups_total{lane="new",outcome="invalid"}';
const warmUpMs = 2_000;
const sizes: Record<Strength, { quietMs: number; attackedMs: number }> = {
  quick: { quietMs: 0, attackedMs: 3_000 },
  full: { quietMs: 30_000, attackedMs: 60_000 },
};

/** One attacker does everything at once, beside honest organizations. */
export const fullStrength: Attack = {
  name: "full-strength",
  tried: `one process attacks in every way at full speed beside ${organizationsCount} honest organizations, ${perSecond} searches a second`,
  stack: { payments: true },
  run: async (stack, strength) => {
    const { quietMs, attackedMs } = sizes[strength];
    const { service, provider } = stack;
    provider.otherwise = delayed(providerMs);
    const load = { organizations: await honestOrganizations(stack, organizationsCount), perSecond };
    const first = await honestBeside(stack, load, () => sleep(warmUpMs));
    const quiet = await honestBeside(stack, load, () => sleep(quietMs));
    const [rich, poor] = [await service.organization({ plan: "free" }), await service.organization({ creditMils: 0 })];
    const memory = await followMemory(stack);
    const attacked = await honestBeside(stack, load, async () => {
      const stop = await startAttacker({ url: stack.apiUrl, rich: rich.token, poor: poor.token });
      await service.until(async () => (await summed(service.apis, guesses)) > 0);
      await sleep(attackedMs);
      stack.say(`the attacker's requests: ${await stop()}`);
    });
    return [
      judgeHonest(attacked),
      ...(strength === "full" ? [judgeWaits(quiet, afterStart(attacked))] : []),
      await memory.judge(),
      await judgeCharges(
        stack,
        load.organizations,
        [...first, ...quiet, ...attacked].filter(({ status }) => status === 200).length,
      ),
    ];
  },
};

/** The answers to searches that began after the attacker had started. */
function afterStart(answers: readonly CallerAnswer[]): CallerAnswer[] {
  const firstAtMs = Math.min(...answers.map(({ beganAtMs }) => beganAtMs));
  return answers.filter(({ beganAtMs }) => beganAtMs >= firstAtMs + startsMs);
}

/** @returns a function that stops the attacker and returns how its requests ended. */
async function startAttacker(order: AttackerOrder): Promise<() => Promise<string>> {
  const path = fileURLToPath(new URL("../full-strength/attacker.ts", import.meta.url));
  const attacker = await startGuardedProcess(process.execPath, [path, JSON.stringify(order)], {
    env: {},
    stdio: ["ignore", "pipe", "ignore"],
  });
  const { stdout } = attacker.process;
  if (!stdout) throw new Error("the attacker's output is a pipe");
  const written = text(stdout);
  return async () => {
    await attacker.stop();
    return (await written).trim();
  };
}

function judgeWaits(quiet: readonly CallerAnswer[], attacked: readonly CallerAnswer[]): Finding {
  const [before, during] = [quiet, attacked].map((answers) =>
    quantile(
      answers.map(({ ms }) => ms),
      0.99,
    ),
  );
  const times = (during ?? 0) / Math.max(1, before ?? 0);
  return {
    promised: `after the first ${startsMs / 1_000} s, 99 of 100 honest searches take at most ${p99TimesMax} times as long as without the attacker`,
    seen: `${before?.toFixed(0)} → ${during?.toFixed(0)} ms, ${times.toFixed(1)} times`,
    held: times <= p99TimesMax,
  };
}

async function followMemory({ service }: AttackStack) {
  const processes = [...service.apis, ...service.workers];
  const watches = processes.map((process) => new MemoryWatch(process));
  const before = await redisBytes(service.redis);
  return {
    judge: async (): Promise<Finding> => {
      const [api, worker] = watches.map((watch) => watch.stop());
      const after = await redisBytes(service.redis);
      return {
        promised: `no process and no Redis grows by more than ${inMb(grownBytesMax)} MB`,
        seen: `API ${api?.toString()}, worker ${worker?.toString()}, Redis ${inMb(before)} → ${inMb(after)} MB`,
        held: [...watches.map(({ grownBytes }) => grownBytes), after - before].every((bytes) => bytes <= grownBytesMax),
      };
    },
  };
}

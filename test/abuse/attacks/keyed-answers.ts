import { setTimeout as sleep } from "node:timers/promises";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { callEach, type CallerAnswer } from "../../faults/scenarios/callers.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { longSnippets } from "../callers/answer-sizes.ts";
import { inMb, redisBytes } from "../judges/memory.ts";

const inFlight = 4;
const bytesMax = 2_000;
const rememberedMs = 60_000;
const searches: Record<Strength, number> = { quick: 12, full: 200 };

/** Answers under Idempotency-Keys, which the service stores for a day. */
export const keyedAnswers: Attack = {
  name: "keyed-answers",
  tried: "searches of depth 100 with 80 kB of results, each under an Idempotency-Key of its own; then Redis is flushed",
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = longSnippets(600);
    const organization = await service.organization({ creditMils: 1_000_000 });
    const before = await redisBytes(service.redis);
    const first = await searchUnderKeys(stack, organization, searches[strength]);
    await service.rest(organization.organizationId);
    const findings = [await judgeRedis(stack, organization, first.length)];
    if (strength === "full") {
      await sleep(rememberedMs); // The promise is about time; there is no event to wait for.
      findings.push(await judgeForgotten(stack, organization, before));
    }
    await service.redis.flushall();
    const calls = provider.requests.length;
    const again = await searchUnderKeys(stack, organization, searches[strength]);
    findings.push(judgeReplays(first, again, provider.requests.length - calls));
    return findings;
  },
};

const searchUnderKeys = ({ callers, apiUrl }: AttackStack, { token }: Organization, count: number) =>
  callEach(count, inFlight, (n) => callers.search(apiUrl, token, { keyword: `keyed ${n}`, depth: 100 }, `key-${n}`));

const recordsOf = ({ service }: AttackStack, { organizationId }: Organization) =>
  service.redis.keys(keysOf(organizationId).record("*"));

async function judgeRedis(stack: AttackStack, organization: Organization, answers: number): Promise<Finding> {
  const records = await recordsOf(stack, organization);
  const sizes = await Promise.all(records.map((key) => stack.service.redis.memory("USAGE", key)));
  const bytes = sizes.reduce((sum: number, size) => sum + (size ?? 0), 0) / Math.max(1, answers);
  return {
    promised: `an answer under a key takes less than ${bytesMax} bytes of Redis`,
    seen: `${bytes.toFixed(0)} bytes each`,
    held: bytes < bytesMax,
  };
}

async function judgeForgotten(stack: AttackStack, organization: Organization, before: number): Promise<Finding> {
  const records = await recordsOf(stack, organization);
  const after = await redisBytes(stack.service.redis);
  return {
    promised: "a minute later Redis has nothing of it",
    seen: `${records.length} records, Redis ${inMb(before)} → ${inMb(after)} MB`,
    held: records.length === 0,
  };
}

function judgeReplays(first: readonly CallerAnswer[], again: readonly CallerAnswer[], calls: number): Finding {
  const different = again.filter(({ status, text }, at) => status !== 200 || text !== first[at]?.text);
  return {
    promised: "after a flush of Redis each key still returns its answer, byte for byte, without a provider call",
    seen: `${again.length - different.length} of ${again.length} equal, ${calls} provider calls; ${tally(again.map(({ status }) => status))}`,
    held: different.length === 0 && calls === 0,
  };
}

import type { CallerAnswer } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import { judgeCharges } from "../judges/money.ts";

const answeredMsMax = 10_000;
const boundMs = 60_000;
const running = 12;
const rounds: Record<Strength, number> = { quick: 1, full: 5 };

/** The connection on which the API reads its replies goes silent. All other connections work. */
export const halfOpenInbox: Attack = {
  name: "half-open-inbox",
  tried: `the API's connection for replies goes silent without a reset while ${running} searches run, a third of them under keys`,
  stack: { proxiedRedis: true },
  run: async (stack, strength) => {
    const { service } = stack;
    const organization = await service.organization({ creditMils: 1_000_000 });
    await service.until(async () => (await service.search(organization.token, { keyword: "before" })).status === 200);
    const answers: CallerAnswer[] = [];
    const tookMs: number[] = [];
    for (let round = 0; round < rounds[strength]; round += 1) {
      const { answers: own, answeredMs } = await fallSilent(stack, organization, round);
      answers.push(...own);
      tookMs.push(answeredMs);
    }
    const answered = 1 + answers.filter(({ status }) => status === 200).length; // One before the first round.
    return [judgeTime(tookMs, answers), await judgeCharges(stack, [organization], answered)];
  },
};

/** Silences the connection while searches run. @returns how they ended, and how long it took until a new one was answered. */
async function fallSilent(
  { service, callers, provider, redisProxy, apiUrl }: AttackStack,
  { token }: Organization,
  round: number,
) {
  const release = provider.hold();
  const before = provider.requests.length;
  const search = (n: number) =>
    callers.search(apiUrl, token, `silent ${round} ${n}`, n % 3 === 0 ? `silent-${round}-${n}` : undefined);
  const searching = Array.from({ length: running }, (_, n) => search(n));
  await service.until(async () => provider.requests.length === before + running);
  redisProxy.replaceHost("serpmill-api-inbox");
  const lostAtMs = performance.now();
  release();
  const again: CallerAnswer[] = [];
  await becomes(async () => {
    again.push(await search(running + again.length));
    return again.at(-1)?.status === 200;
  }, boundMs);
  const answeredMs = performance.now() - lostAtMs;
  return { answers: [...(await Promise.all(searching)), ...again], answeredMs };
}

function judgeTime(tookMs: readonly number[], answers: readonly CallerAnswer[]): Finding {
  const longestMs = Math.max(...tookMs);
  return {
    promised: `searches in flight are answered, and new ones within ${answeredMsMax / 1_000} s`,
    seen: `${tally(answers.map(({ status }) => status))}; after ${(longestMs / 1_000).toFixed(1)} s at the most`,
    held: longestMs <= answeredMsMax && answers.every(({ status }) => status === 200),
  };
}

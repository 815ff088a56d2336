import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { judgeCharges } from "../judges/money.ts";
import { readBacklog } from "../../harness/assertions/backlog.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import type { Answer, Organization } from "../../harness/processes/service.ts";
import { tally } from "../../faults/scenarios/statistics.ts";

const running = 8;
const boundMs = 90_000;

/** Redis is out of memory while searches run. */
export const fullRedis: Attack = {
  name: "full-redis",
  tried: `Redis reaches its memory limit while ${running} searches run, half of them under a key`,
  sharesStack: true,
  run: async (stack) => {
    const { service, provider } = stack;
    const organization = await service.organization();
    const release = provider.hold();
    const searching = Array.from({ length: running }, (_, n) => search(stack, organization, n));
    await service.until(async () => provider.requests.length === running);
    await service.redis.config("SET", "maxmemory", "1");
    release();
    const answers = await Promise.all(searching);
    const ended = await becomes(async () => (await service.holdsOf(organization.organizationId)).open === 0, boundMs);
    const refused = [await search(stack, organization, running), await search(stack, organization, running + 1)];
    const replay = await search(stack, organization, 0);
    await service.redis.config("SET", "maxmemory", "0");
    return [
      judgeEnds(answers, ended),
      judgeReplay(replay, answers[0]),
      await judgeAfter(stack, organization, { refused, answered: answers.length }),
    ];
  },
};

/** Every second one is under a key. */
const search = ({ service }: AttackStack, { token }: Organization, n: number) =>
  service.search(token, { keyword: `full ${n}` }, n % 2 === 0 ? { key: `full-${n}` } : {});

function judgeEnds(answers: readonly Answer[], ended: boolean): Finding {
  const statuses = answers.map(({ status }) => status);
  return {
    promised: "a full Redis still ends holds and answers what was admitted",
    seen: `${tally(statuses)}; holds ${ended ? "ended" : "stay open"}`,
    held: ended && statuses.every((status) => status === 200),
  };
}

const judgeReplay = (replay: Answer, first: Answer | undefined): Finding => ({
  promised: "a key that has paid returns the same bytes",
  seen: String(replay.status),
  held: replay.status === 200 && replay.text === first?.text,
});

async function judgeAfter(
  stack: AttackStack,
  organization: Organization,
  { refused, answered }: { refused: readonly Answer[]; answered: number },
): Promise<Finding> {
  const { service } = stack;
  const searchAgain = () => service.search(organization.token, { keyword: "after" });
  const again = await becomes(async () => (await searchAgain()).status === 200, boundMs);
  // BullMQ could not finish the jobs of before: they stall, run once more, and change nothing.
  const isIdle = await becomes(async () => {
    const { waiting, running: active } = await readBacklog(service.redis);
    return waiting + active === 0;
  }, boundMs);
  const charges = await judgeCharges(stack, [organization], answered + 1);
  const statuses = refused.map(({ status }) => status);
  return {
    promised: "new searches are refused with 503, and answered again once there is room; each answer is charged once",
    seen: `${tally(statuses)}, then ${again ? "answered" : "not answered"}${isIdle ? "" : ", jobs are left"}; ${charges.seen}`,
    held: statuses.every((status) => status === 503) && again && isIdle && charges.held,
  };
}

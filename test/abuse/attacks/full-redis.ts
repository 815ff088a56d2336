import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import type { Answer, Organization } from "../../harness/processes/service.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { ledgerViolations } from "../../faults/audit/audit.ts";

const running = 8;
const boundMs = 90_000;

/** A Redis whose memory others have filled, while searches run. */
export const fullRedis: Attack = {
  name: "full-redis",
  tried: `Redis reaches its memory limit while ${running} searches run, half of them under a key`,
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
    const refused = await service.search(organization.token, { keyword: "while full" });
    await service.redis.config("SET", "maxmemory", "0");
    return [judgeEnds(answers, ended), await judgeAfter(stack, organization, refused)];
  },
};

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

async function judgeAfter(stack: AttackStack, { token }: Organization, refused: Answer): Promise<Finding> {
  const { service } = stack;
  const again = await becomes(async () => (await service.search(token, { keyword: "after" })).status === 200, boundMs);
  const rested = await service.rest().then(
    () => [],
    () => ["something stays in flight"],
  );
  const violations = [...rested, ...(await ledgerViolations(service))];
  return {
    promised: "a new search is refused with 503, and searches are answered again once there is room",
    seen: [`${refused.status}, then ${again ? "answered" : "not answered"}`, ...violations].join("; "),
    held: refused.status === 503 && again && violations.length === 0,
  };
}

import { arriveAt, type CallerAnswer, outcomeOfAnswer } from "../../faults/scenarios/callers.ts";
import { quantile, tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Finding } from "../attack.ts";

const lastsMsMax = 600_000;

/** The load of honest organizations: distinct searches at this rate, over all organizations. */
export interface HonestLoad {
  organizations: readonly Organization[];
  perSecond: number;
}

let searches = 0;

/** Honest organizations search steadily while `use` runs. @returns all their answers. */
export async function honestBeside(
  { callers, apiUrl }: AttackStack,
  { organizations, perSecond }: HonestLoad,
  use: () => Promise<unknown>,
): Promise<CallerAnswer[]> {
  const answers: CallerAnswer[] = [];
  let isOver = false;
  const searching = arriveAt({
    perSecond,
    forMs: lastsMsMax,
    isEnough: () => isOver,
    call: async (count) => {
      const token = organizations[count % organizations.length]?.token ?? "";
      searches += 1;
      answers.push(await callers.search(apiUrl, token, `honest ${searches}`));
    },
  });
  try {
    await use();
  } finally {
    isOver = true;
    await searching;
  }
  return answers;
}

/** Organizations with plenty of credit. */
export const honestOrganizations = ({ service }: AttackStack, count: number): Promise<Organization[]> =>
  Promise.all(Array.from({ length: count }, () => service.organization({ creditMils: 1_000_000 })));

/** Whether every honest search was answered. */
export function judgeHonest(answers: readonly CallerAnswer[], promised = "every honest search is answered"): Finding {
  const lost = answers.filter(({ status }) => status !== 200);
  const times = answers.map(({ ms }) => ms);
  const reasons = lost.map(outcomeOfAnswer);
  return {
    promised,
    seen: [
      `${answers.length - lost.length} of ${answers.length}`,
      `median ${quantile(times, 0.5).toFixed(0)} ms, at most ${Math.max(0, ...times).toFixed(0)} ms`,
      ...(lost.length > 0 ? [tally(reasons)] : []),
    ].join(", "),
    held: lost.length === 0 && answers.length > 0,
  };
}

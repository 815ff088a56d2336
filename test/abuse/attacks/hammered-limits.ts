import { changeLimits } from "../../../api/organizations/limits.ts";
import { countCharges, readAccounts } from "../../faults/audit/accounts.ts";
import { type CallerAnswer, keepInFlight, outcomeOfAnswer } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization, Service } from "../../harness/processes/service.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { commitsOf } from "../judges/transactions.ts";

const priceMils = 5;
const roomForSearches = 3;
const inFlight = 32;
const honestPerSecond = 5;
// Four checks a second for each of two limits, ten key look-ups, four transactions for each honest search.
const commitsPerSecondMax = 100;
const lastsMs: Record<Strength, number> = { quick: 2_000, full: 20_000 };

/** Programs that ignore their errors keep searching beyond a spending limit. */
export const hammeredLimits: Attack = {
  name: "hammered-limits",
  tried: `searches at the limit of an organization and of a token, with and without keys, ${inFlight} in flight, while another token of the same organization searches`,
  sharesStack: true,
  run: async (stack, strength) => {
    const { limited, runaway, shared } = await limit(stack);
    const organizations = [shared, ...(await honestOrganizations(stack, 3))];
    const honest = { organizations, perSecond: honestPerSecond };
    const commitsBefore = await commitsOf(stack);
    const beganAtMs = performance.now();
    const refusals: CallerAnswer[] = [];
    const beside = await honestBeside(stack, honest, async () => {
      refusals.push(...(await hammer(stack, [limited.token, runaway.token], lastsMs[strength])));
    });
    const seconds = (performance.now() - beganAtMs) / 1_000;
    const commits = (await commitsOf(stack)) - commitsBefore;
    return [
      await judgeRefusals(stack.service, refusals, limited),
      {
        promised: `at most ${commitsPerSecondMax} transactions a second in Postgres, those of honest searches included`,
        seen: `${Math.round(commits / seconds)} beside ${Math.round(refusals.length / seconds)} refusals a second`,
        held: commits / seconds <= commitsPerSecondMax,
      },
      judgeHonest(beside, "every honest search is answered, also by the other token of the organization"),
    ];
  },
};

/**
 * An organization at its limit, and a token at its limit in an organization with room for other tokens. The rate windows are so
 * large that the API decides each refusal and answers none from memory.
 */
async function limit({ service, callers, apiUrl }: AttackStack) {
  const [limited, shared] = await Promise.all(
    Array.from({ length: 2 }, () => service.organization({ creditMils: 1_000_000, terms: {} })),
  );
  const runaway = shared && (await service.issue(shared.organizationId));
  if (!limited || !runaway) throw new Error("no token");
  const dayMils = roomForSearches * priceMils;
  await changeLimits(service.database, "organization", limited.organizationId, { dayMils });
  await changeLimits(service.database, "token", runaway.tokenId, { dayMils });
  for (const { token } of [limited, runaway])
    for (let n = 0; n < roomForSearches; n += 1) await callers.search(apiUrl, token, `room for ${n}`);
  await service.rest();
  return { limited, runaway, shared };
}

async function hammer({ apiUrl, callers }: AttackStack, tokens: readonly string[], forMs: number) {
  const untilMs = performance.now() + forMs;
  const answers: CallerAnswer[] = [];
  await keepInFlight(inFlight, async (caller) => {
    const count = answers.length;
    const key = count % 4 === 0 ? `hammered-${caller}-${count}` : undefined;
    answers.push(await callers.search(apiUrl, tokens[caller % tokens.length] ?? "", `beyond ${count}`, key));
    return performance.now() < untilMs;
  });
  return answers;
}

/** Whether each search beyond the limit was refused by it, and the organization paid for those within it. */
async function judgeRefusals(
  { database }: Service,
  refusals: readonly CallerAnswer[],
  { organizationId }: Organization,
): Promise<Finding> {
  const outcomes = refusals.map(outcomeOfAnswer);
  const { byRequest } = await readAccounts(database, [organizationId]);
  const charges = await countCharges(database, organizationId);
  return {
    promised: "each gets 402 with the limit as its reason, and no ledger entry",
    seen: `${tally(outcomes)}; ${byRequest.size} entries, ${charges} of them charges for what the limit allows`,
    held:
      outcomes.length > 0 &&
      outcomes.every((outcome) => outcome === "402 daily_limit" || outcome === "402 token_limit") &&
      byRequest.size === roomForSearches &&
      charges === roomForSearches,
  };
}

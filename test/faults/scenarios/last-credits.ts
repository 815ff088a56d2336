import { keysOf } from "../../../shared/credits/holds.ts";
import { readBalance } from "../../../shared/credits/ledger.ts";
import type { Row } from "../report.ts";
import { keepInFlight, type CallerAnswer } from "./callers.ts";
import { withStack, type Scenario, type ScenarioStack, type ScenarioServers, tally } from "./scenario.ts";

/** Many callers, two APIs, and credit for some of the searches only. */

const priceMils = 5;
const providerMs = 20;
const lookEveryMs = 25;

export interface LastCreditsSize {
  attempts: number;
  affordable: number;
  inFlight: number;
}

export interface LastCreditsFigures {
  size: LastCreditsSize;
  answers: CallerAnswer[];
  providerCalls: number;
  /** The balance at the end, as each of them tells it. */
  balances: { rest: unknown; redis: number; postgres: number | undefined };
  charges: number;
  /** The least that was left in Redis at any look while they raced: balance less held. */
  leastMils: number;
  verified: boolean;
}

export const lastCredits: Scenario = {
  name: "last-credits",
  run: async (surroundings) =>
    rowsOf(await measureLastCredits(surroundings, { attempts: 5_000, affordable: 1_000, inFlight: 96 })),
};

export async function measureLastCredits(
  surroundings: ScenarioServers,
  size: LastCreditsSize,
): Promise<LastCreditsFigures> {
  return withStack(surroundings, { apis: 2, workers: 2, providerMs }, async (scene) => {
    const { service, callers, provider, say } = scene;
    const creditMils = size.affordable * priceMils;
    const { organizationId, token } = await service.organization({ creditMils, terms: { priceMils } });
    const answers: CallerAnswer[] = [];
    const least = watchLeast(scene, organizationId);
    let begun = 0;
    await keepInFlight(size.inFlight, async () => {
      if (begun === size.attempts) return false;
      begun += 1;
      const { url } = service.apis[begun % 2] ?? { url: "" };
      answers.push(await callers.search(url, token, `last credits ${begun}`));
      return true;
    });
    const leastMils = await least.stop();
    say(`last credits: ${answers.length} attempts, ${tally(answers.map(({ status }) => status))}`);
    await service.rest();
    const copy = await service.redis.hget(keysOf(organizationId).balance, "balance");
    return {
      size,
      answers,
      providerCalls: provider.requests.length,
      balances: {
        rest: (await service.usage(token)).body.creditBalanceMils,
        redis: Number(copy),
        postgres: (await readBalance(service.database, organizationId))?.balanceMils,
      },
      charges: (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length,
      leastMils,
      verified: (await service.verify()).ok,
    };
  });
}

/** Looks all the time at what is left; Postgres itself refuses a balance below 0, Redis has no such rule. */
function watchLeast({ service }: ScenarioStack, organizationId: string) {
  const keys = keysOf(organizationId);
  let leastMils = Number.POSITIVE_INFINITY;
  const look = async () => {
    const replies = await service.redis.multi().hget(keys.balance, "balance").hget(keys.holds, "held").exec();
    const [balance, held] = (replies ?? []).map(([, reply]) => reply);
    if (typeof balance === "string") leastMils = Math.min(leastMils, Number(balance) - Number(held ?? 0));
  };
  const looking = setInterval(() => void look(), lookEveryMs);
  return {
    stop: async () => {
      clearInterval(looking);
      await look();
      return leastMils;
    },
  };
}

function rowsOf({ size, answers, providerCalls, balances, charges, leastMils, verified }: LastCreditsFigures): Row[] {
  const { attempts, affordable, inFlight } = size;
  const what = `${attempts} searches, ${inFlight} at once over 2 APIs, credit for ${affordable}`;
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  const { rest, redis, postgres } = balances;
  return [
    {
      what,
      promised: `${affordable} answered, ${attempts - affordable} refused with 402`,
      seen: `${tally(answers.map(({ status }) => status))}; the provider was asked ${providerCalls} times`,
      held: count(200) === affordable && count(402) === attempts - affordable && providerCalls === affordable,
    },
    {
      what,
      promised: `${affordable} charges, balance 0 in REST, Redis and Postgres`,
      seen: `${charges} charges; ${String(rest)}, ${redis}, ${String(postgres)} mils; ledger ${verified ? "verified" : "broken"}`,
      held: charges === affordable && rest === 0 && redis === 0 && postgres === 0 && verified,
    },
    { what, promised: "never below 0", seen: `${leastMils} mils at the least`, held: leastMils >= 0 },
  ];
}

import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { readCredit } from "../../../shared/credits/ledger.ts";
import { auditCharges } from "../audit/audit.ts";
import { priceMils } from "../audit/evidence.ts";
import type { Row } from "../report.ts";
import { type CallerAnswer, keepInFlight } from "./callers.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { tally } from "./statistics.ts";

/** Many callers at two APIs, and credit for some of the searches only. */

const providerMs = 20;
const pollMs = 25;
const attempts = 5_000;
const affordable = 1_000;
const inFlight = 96;

interface Figures {
  answers: CallerAnswer[];
  providerCalls: number;
  /** The balance at the end, as each source says it. */
  balances: { rest: unknown; redis: number; postgres: number | undefined };
  /** The least that could be spent by Redis at any poll while the callers raced: balance less held. */
  leastMils: number;
  broken: string[];
}

export const lastCredits: Scenario = {
  name: "last-credits",
  run: (servers) => withStack(servers, { apis: 2, workers: 2 }, async (stack) => rowsOf(await measure(stack))),
};

async function measure(stack: ScenarioStack): Promise<Figures> {
  const { service, callers, provider, say } = stack;
  stack.answerAfter(providerMs);
  const organization = await service.organization({ creditMils: affordable * priceMils, terms: { priceMils } });
  const { organizationId, token } = organization;
  const answers: CallerAnswer[] = [];
  const least = pollLeast(stack, organizationId);
  let sent = 0;
  await keepInFlight(inFlight, async () => {
    if (sent === attempts) return false;
    sent += 1;
    answers.push(await callers.search(stack.apiUrl(sent), token, `last credits ${sent}`));
    return true;
  });
  const leastMils = await least.stop();
  say(`last credits: ${answers.length} attempts, ${tally(answers.map(({ status }) => status))}`);
  await service.rest();
  const usage: unknown = JSON.parse((await callers.usage(stack.apiUrl(0), token)).text);
  return {
    answers,
    providerCalls: provider.requests.length,
    balances: {
      rest: Object(usage).creditBalanceMils,
      redis: Number(await service.redis.hget(keysOf(organizationId).balance, "balance")),
      postgres: (await readCredit(service.database, organizationId))?.balance.balanceMils,
    },
    leastMils,
    broken: await auditCharges(service, organizationId, affordable),
  };
}

/** Polls what can be spent. Postgres itself refuses a balance below 0; Redis has no such rule. */
function pollLeast({ service }: ScenarioStack, organizationId: string) {
  const keys = keysOf(organizationId);
  let leastMils = Number.POSITIVE_INFINITY;
  const poll = async () => {
    const replies = await service.redis.multi().hget(keys.balance, "balance").hget(keys.holds, "held").exec();
    const [balance, held] = (replies ?? []).map(([, reply]) => reply);
    if (typeof balance === "string") leastMils = Math.min(leastMils, Number(balance) - Number(held ?? 0));
  };
  const polling = setInterval(() => void poll(), pollMs);
  return {
    stop: async () => {
      clearInterval(polling);
      await poll();
      return leastMils;
    },
  };
}

function rowsOf({ answers, providerCalls, balances, leastMils, broken }: Figures): Row[] {
  const what = `${attempts} searches, ${inFlight} at once over 2 APIs, credit for ${affordable}`;
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  const { rest, redis, postgres } = balances;
  return [
    {
      what,
      promised: `${affordable} answered, ${attempts - affordable} refused with 402`,
      seen: `${tally(answers.map(({ status }) => status))}; ${providerCalls} provider calls`,
      held: count(200) === affordable && count(402) === attempts - affordable && providerCalls === affordable,
    },
    {
      what,
      promised: `${affordable} charges, balance 0 in REST, Redis and Postgres`,
      seen: [`${String(rest)}, ${redis}, ${String(postgres)} mils`, ...broken].join("; "),
      held: rest === 0 && redis === 0 && postgres === 0 && broken.length === 0,
    },
    { what, promised: "never below 0", seen: `${leastMils} mils at the least`, held: leastMils >= 0 },
  ];
}

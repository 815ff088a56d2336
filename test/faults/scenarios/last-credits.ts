import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { readCredit } from "../../../shared/credits/ledger.ts";
import { auditCharges } from "../audit/audit.ts";
import { priceMils } from "../audit/evidence.ts";
import type { Row } from "../report.ts";
import { callEach } from "./callers.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { tally } from "./statistics.ts";

/** Many callers search through two APIs, with credit for only some of the searches. */

const providerMs = 20;

/** There is credit for `affordable` searches. */
const fullSize = { attempts: 5_000, inFlight: 96, affordable: 1_000 };

export const lastCredits: Scenario = {
  name: "last-credits",
  run: (servers) => withStack(servers, { apis: 2, workers: 2 }, async (stack) => measureLastCredits(stack, fullSize)),
};

export async function measureLastCredits(
  stack: ScenarioStack,
  { attempts, inFlight, affordable }: typeof fullSize,
): Promise<Row[]> {
  const { service, callers, provider, say } = stack;
  stack.answerAfter(providerMs);
  const callsBefore = provider.requests.length;
  const organization = await service.organization({ creditMils: affordable * priceMils, terms: { priceMils } });
  const { organizationId, token } = organization;
  const answers = await callEach(attempts, inFlight, (n) =>
    callers.searchUntilDecided(stack.apiUrl(n), token, `last credits ${n}`),
  );
  const statuses = tally(answers.map(({ status }) => status));
  say(`last credits: ${answers.length} attempts, ${statuses}`);
  await service.rest();

  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  const providerCalls = provider.requests.length - callsBefore;
  const usage: unknown = JSON.parse((await callers.usage(stack.apiUrl(0), token)).text);
  const rest: unknown = Object(usage).creditBalanceMils;
  const redis = Number(await service.redis.hget(keysOf(organizationId).balance, "balance"));
  const postgres = (await readCredit(service.database, organizationId))?.balance.balanceMils;
  const broken = await auditCharges(service, organizationId, affordable);
  const what = `${attempts} searches, ${inFlight} at once over 2 APIs, credit for ${affordable}`;
  return [
    {
      what,
      promised: `${affordable} answered, ${attempts - affordable} refused with 402`,
      seen: `${statuses}; ${providerCalls} provider calls`,
      held: count(200) === affordable && count(402) === attempts - affordable && providerCalls === affordable,
    },
    {
      what,
      promised: `${affordable} charges, balance 0 in REST, Redis and Postgres`,
      seen: [`${String(rest)}, ${redis}, ${String(postgres)} mils`, ...broken].join("; "),
      held: rest === 0 && redis === 0 && postgres === 0 && broken.length === 0,
    },
  ];
}

import { publishIdentityChange } from "../../../shared/organizations/organizations.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { auditCharges } from "../audit/audit.ts";
import { priceMils } from "../audit/evidence.ts";
import type { Row } from "../report.ts";
import type { CallerAnswer } from "./callers.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { tally } from "./statistics.ts";

/** Many searches at once through two APIs, with a spending limit for only some of them. A worker is killed while it runs some. */

const providerMs = 1_000;
const searches = 200;
const affordable = 50;
const fullRounds = 5;

export const lastOfLimit: Scenario = {
  name: "last-of-limit",
  run: (servers) => withStack(servers, { apis: 2, workers: 2 }, (stack) => measureLastOfLimit(stack, fullRounds)),
};

/** @param rounds the limit is the organization's in odd rounds, and the token's in even ones. */
export async function measureLastOfLimit(stack: ScenarioStack, rounds: number): Promise<Row[]> {
  stack.answerAfter(providerMs);
  const answers: CallerAnswer[] = [];
  const broken: string[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const { organizationId, token } = await limitedOrganization(stack, round % 2 === 0 ? "token" : "organization");
    answers.push(...(await searchWhileWorkerDies(stack, token, round)));
    await stack.service.rest();
    broken.push(...(await auditCharges(stack.service, organizationId, affordable)));
    stack.say(`last of a limit ${round} of ${rounds}: ${tally(answers.map(({ status }) => status))} so far`);
  }
  const what = `${searches} searches at once over 2 APIs on a limit for ${affordable}, one of 2 workers killed; ${rounds} times`;
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  return [
    {
      what,
      promised: `${affordable} answered, ${searches - affordable} refused with 402`,
      seen: tally(answers.map(({ status }) => status)),
      held: count(200) === rounds * affordable && count(402) === rounds * (searches - affordable),
    },
    { what, promised: `${affordable} charges`, seen: broken.join("; ") || "so", held: broken.length === 0 },
  ];
}

/** Creates an organization with a limit on itself or on its token. */
async function limitedOrganization({ service }: ScenarioStack, owner: "organization" | "token") {
  const organization = await service.organization({ creditMils: 2 * searches * priceMils, terms: { priceMils } });
  const id = owner === "token" ? organization.tokenId : organization.organizationId;
  await changeLimits(service.database, owner, id, { dayMils: affordable * priceMils });
  await publishIdentityChange(service.redis);
  return organization;
}

async function searchWhileWorkerDies(stack: ScenarioStack, token: string, round: number): Promise<CallerAnswer[]> {
  const { service, callers, provider, workers } = stack;
  const before = provider.requests.length;
  const sent = Array.from({ length: searches }, (_, n) =>
    callers.searchUntilDecided(stack.apiUrl(n), token, `limit ${round} ${n}`),
  );
  await service.until(async () => provider.requests.length - before >= affordable / 5);
  const victim = workers[round % workers.length];
  victim?.kill();
  const answers = await Promise.all(sent);
  await victim?.ready();
  return answers;
}

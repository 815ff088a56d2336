import { inject } from "vitest";
import { besidePostgres } from "../harness/servers/beside-postgres.ts";
import { freshRedis } from "../harness/servers/servers.ts";
import { attacks } from "./all.ts";
import type { Attack, Finding } from "./attack.ts";
import type { ScenarioServers } from "../faults/scenarios/scenario-stack.ts";
import { tenOrganic } from "../harness/stubs/serper-stub.ts";
import type { AttackStack } from "./attack-stack.ts";

/** Quick attacks, for what they gain and not for how fast others are served; `npm run abuse` strikes with full force. */

/** What they promise, a time or a bound of memory, shows only in a long attack on a machine of its own. */
const namesOfLong = [
  "crowded-adaptive-limit",
  "crowded-fixed-limit",
  "full-strength",
  "huge-pages",
  "limited-tokens",
  "unread-streams",
];
/** The others attack one service, which has what each of them needs and is afterwards as it was. */
export const quickAttacks = attacks.filter(({ name }) => !namesOfLong.includes(name));
if (quickAttacks.length + namesOfLong.length !== attacks.length)
  throw new Error("quick.ts names an attack that there is not");

export const attackServers = (): ScenarioServers => ({
  postgresUrl: inject("postgresUrl"),
  say: () => undefined,
  startRedis: freshRedis,
});

const attemptsMax = 3;
// A token's lookup times out after 1,500 ms. If a connection to Postgres takes this long, a broken promise says nothing about
// the service.
const connectMsMax = 250;

export const notHeld = (findings: readonly Finding[]): Finding[] => findings.filter(({ held }) => !held);

/** Attacks a service, once more if the machine was too busy to judge it. */
export async function strike(attack: Attack, stack: AttackStack): Promise<Finding[]> {
  for (let attempt = 1; ; attempt += 1) {
    stack.provider.otherwise = tenOrganic;
    stack.provider.requests.length = 0;
    // Not to the attack's own database, of which some attacks count the transactions.
    const struck = await besidePostgres(inject("postgresUrl"), () => attack.run(stack, "quick"));
    const { value: findings, longestMs } = struck;
    if (notHeld(findings).length === 0 || longestMs <= connectMsMax || attempt === attemptsMax) return findings;
  }
}

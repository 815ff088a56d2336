import { inject } from "vitest";
import { besidePostgres } from "../harness/servers/beside-postgres.ts";
import { freshRedis } from "../harness/servers/servers.ts";
import { attacks } from "./all.ts";
import type { Attack, Finding } from "./attack.ts";
import type { ScenarioServers } from "../faults/scenarios/scenario-stack.ts";
import { tenOrganic } from "../harness/stubs/serper-stub.ts";
import { type AttackStack, withAttackStack } from "./attack-stack.ts";

/** Quick attacks, for what they gain and not for how fast others are served; `npm run abuse` strikes with full force. */

/** They leave a service other than it was, need one that is set up for them, or judge how much of it one caller takes. */
const namesOnOwnServices = new Set(["crowded-fixed-limit", "full-redis", "unread-answers", "unread-streams"]);
/** What they promise, a time or a bound of memory, shows only in a long attack on a machine of its own. */
const namesOfLong = new Set(["crowded-adaptive-limit", "full-strength", "huge-pages", "limited-tokens"]);

export const onOwnServices = attacks.filter(({ name }) => namesOnOwnServices.has(name));
const long = attacks.filter(({ name }) => namesOfLong.has(name));
if (onOwnServices.length + long.length < namesOnOwnServices.size + namesOfLong.size)
  throw new Error("quick.ts names an attack that there is not");
/** All others attack one service, which has what each of them needs. */
export const onOneService = attacks.filter((attack) => !onOwnServices.includes(attack) && !long.includes(attack));

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

/**
 * Attacks a service, once more if the machine was too busy to judge it.
 * @param shared the service; without it, each attempt gets one of its own.
 */
export async function strike(attack: Attack, shared?: AttackStack): Promise<Finding[]> {
  const run = (stack: AttackStack) => {
    stack.provider.otherwise = tenOrganic;
    stack.provider.requests.length = 0;
    // Not to the attack's own database, of which some attacks count the transactions.
    return besidePostgres(inject("postgresUrl"), () => attack.run(stack, "quick"));
  };
  for (let attempt = 1; ; attempt += 1) {
    const struck = await (shared ? run(shared) : withAttackStack(attackServers(), attack.stack, run));
    const { value: findings, longestMs } = struck;
    if (notHeld(findings).length === 0 || longestMs <= connectMsMax || attempt === attemptsMax) return findings;
  }
}

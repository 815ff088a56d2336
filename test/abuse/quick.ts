import { inject } from "vitest";
import { besidePostgres } from "../harness/servers/beside-postgres.ts";
import { freshRedis } from "../harness/servers/servers.ts";
import { attacks } from "./all.ts";
import type { Attack, Finding } from "./attack.ts";
import type { ScenarioServers } from "../faults/scenarios/scenario-stack.ts";
import { withAttackStack } from "./attack-stack.ts";

/** Quick attacks, for what they gain and not for how fast others are served; `npm run abuse` strikes with full force. */

/** They leave a service as it was, so they attack the same one. */
const namesOnOneService = [
  "lookalike-hosts",
  "pipelined-answers",
  "cancelled-answers",
  "first-copy",
  "disconnected-searches",
  "lowered-limits",
  "random-tokens",
  "flood-of-refusals",
  "odd-requests",
  "waiting-repeats",
  "one-key-many-queries",
  "last-kilobyte",
  "foreign-checkout",
  "crowded-sign-ins",
  "signature-flood",
  "hidden-changes",
  "outliving-tokens",
  "crafted-inputs",
  "untaken-pairs",
  "keyed-answers",
  "limited-tokens",
  "planted-cookies",
  "confused-doors",
  "leaking-addresses",
  "impatient-clients",
  "stolen-logins",
];
/** By these one caller or many take what others need. Each gets a service of its own. */
const crowdNames = [
  "crowded-adaptive-limit",
  "crowded-fixed-limit",
  "crowded-streams",
  "full-strength",
  "hammered-limits",
  "huge-pages",
  "many-organizations",
];

/** @throws {Error} if there is no attack of a name. */
const named = (names: readonly string[]): Attack[] =>
  names.map((name) => {
    const attack = attacks.find((other) => other.name === name);
    if (!attack) throw new Error(`there is no attack ${name}`);
    return attack;
  });

export const onOneService = named(namesOnOneService);
export const crowds = named(crowdNames);
/** All others, each on a service of its own. */
export const onOwnServices = attacks.filter((attack) => !onOneService.includes(attack) && !crowds.includes(attack));

export const attackServers = (): ScenarioServers => ({
  postgresUrl: inject("postgresUrl"),
  say: () => undefined,
  startRedis: freshRedis,
});

/** No attack takes longer, once, however busy the machine is. */
export const attackMsMax = 180_000;
export const attemptsMax = 3;
// A token's lookup times out after 1,500 ms. If a connection to Postgres takes this long, a broken promise says nothing about
// the service.
const connectMsMax = 250;

export const notHeld = (findings: readonly Finding[]): Finding[] => findings.filter(({ held }) => !held);

/** Attacks a service of its own, once more if the machine was too busy to judge it. */
export async function strike(attack: Attack): Promise<Finding[]> {
  for (let attempt = 1; ; attempt += 1) {
    const { value: findings, longestMs } = await withAttackStack(attackServers(), attack.stack, (stack) =>
      // Not to the attack's own database, of which some attacks count the transactions.
      besidePostgres(inject("postgresUrl"), () => attack.run(stack, "quick")),
    );
    if (notHeld(findings).length === 0 || longestMs <= connectMsMax || attempt === attemptsMax) return findings;
  }
}

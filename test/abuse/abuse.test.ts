import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { besidePostgres } from "../harness/servers/beside-postgres.ts";
import { freshRedis } from "../harness/servers/servers.ts";
import { tenOrganic } from "../harness/stubs/serper-stub.ts";
import { attacks } from "./all.ts";
import type { Attack, Finding } from "./attack.ts";
import { AttackStack, withAttackStack } from "./attack-stack.ts";
import { cancelledAnswers } from "./attacks/cancelled-answers.ts";
import { craftedInputs } from "./attacks/crafted-inputs.ts";
import { crowdedAdaptiveLimit, crowdedFixedLimit } from "./attacks/crowded-provider.ts";
import { crowdedSignIns } from "./attacks/crowded-sign-ins.ts";
import { crowdedStreams } from "./attacks/crowded-streams.ts";
import { falseRefusals } from "./attacks/false-refusals.ts";
import { firstCopy } from "./attacks/first-copy.ts";
import { floodOfRefusals } from "./attacks/flood-of-refusals.ts";
import { foreignCheckout } from "./attacks/foreign-checkout.ts";
import { fullRedis } from "./attacks/full-redis.ts";
import { hammeredLimits } from "./attacks/hammered-limits.ts";
import { hiddenChanges } from "./attacks/hidden-changes.ts";
import { hugePages } from "./attacks/huge-pages.ts";
import { disconnectedSearches } from "./attacks/disconnected-searches.ts";
import { keyedAnswers } from "./attacks/keyed-answers.ts";
import { lastKilobyte } from "./attacks/last-kilobyte.ts";
import { limitedTokens } from "./attacks/limited-tokens.ts";
import { lookalikeHosts } from "./attacks/lookalike-hosts.ts";
import { loweredLimits } from "./attacks/lowered-limits.ts";
import { manyOrganizations } from "./attacks/many-organizations.ts";
import { oddRequests } from "./attacks/odd-requests.ts";
import { oneKeyManyQueries } from "./attacks/one-key-many-queries.ts";
import { outlivingTokens } from "./attacks/outliving-tokens.ts";
import { pipelinedAnswers } from "./attacks/pipelined-answers.ts";
import { plantedCookies } from "./attacks/planted-cookies.ts";
import { randomTokens } from "./attacks/random-tokens.ts";
import { signatureFlood } from "./attacks/signature-flood.ts";
import { slowCallers } from "./attacks/slow-callers.ts";
import { stolenLogins } from "./attacks/stolen-logins.ts";
import { unreadAnswers } from "./attacks/unread-answers.ts";
import { unreadStreams } from "./attacks/unread-streams.ts";
import { unsupportedQueries } from "./attacks/unsupported-queries.ts";
import { untakenPairs } from "./attacks/untaken-pairs.ts";
import { waitingRepeats } from "./attacks/waiting-repeats.ts";

/** Short attacks, for what they gain and not for how fast others are served; `npm run abuse` strikes with full force. */

const onUsualService: readonly Attack[] = [
  lookalikeHosts,
  pipelinedAnswers,
  cancelledAnswers,
  firstCopy,
  disconnectedSearches,
  loweredLimits,
  randomTokens,
  floodOfRefusals,
  oddRequests,
  waitingRepeats,
  oneKeyManyQueries,
  lastKilobyte,
  foreignCheckout,
  crowdedSignIns,
  signatureFlood,
  hiddenChanges,
  outlivingTokens,
  craftedInputs,
  untakenPairs,
];
const onOwnService: readonly Attack[] = [
  hammeredLimits,
  limitedTokens,
  plantedCookies,
  falseRefusals,
  slowCallers,
  fullRedis,
  hugePages,
  keyedAnswers,
  stolenLogins,
  unreadAnswers,
  unreadStreams,
  crowdedStreams,
  unsupportedQueries,
  manyOrganizations,
  crowdedFixedLimit,
  crowdedAdaptiveLimit,
];

const servers = () => ({ postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis });
const timeout = 180_000;
const attemptsMax = 3;
// A token's lookup is given up after 1,500 ms. Where a connection to Postgres takes this long, a promise that was not held says
// nothing about the service.
const connectMsMax = 250;
const notHeld = (findings: readonly Finding[]) => findings.filter(({ held }) => !held);

/** Attacks a service of its own, once more if the machine was too busy to judge it. */
async function strike(attack: Attack): Promise<Finding[]> {
  for (let attempt = 1; ; attempt += 1) {
    const { value: findings, longestMs } = await withAttackStack(servers(), attack.stack, (stack) =>
      // Not to the attack's own database, of which some attacks count the transactions.
      besidePostgres(inject("postgresUrl"), () => attack.run(stack, "quick")),
    );
    if (notHeld(findings).length === 0 || longestMs <= connectMsMax || attempt === attemptsMax) return findings;
  }
}

describe("an attacker gets nothing for free and stops no other caller", () => {
  let stack: AttackStack;
  beforeAll(async () => {
    stack = await AttackStack.open(servers(), { payments: true, settings: { TRUSTED_PROXIES: "1" } });
  }, timeout);
  afterAll(() => stack.close());

  test.each(onUsualService)("$name", { timeout }, async (attack) => {
    stack.provider.otherwise = tenOrganic;
    const findings = await attack.run(stack, "quick");
    expect(notHeld(findings)).toEqual([]);
    expect(findings.length).toBeGreaterThan(0);
  });

  test.each(onOwnService)("$name, on a service of its own", { timeout: attemptsMax * timeout }, async (attack) => {
    const findings = await strike(attack);
    expect(notHeld(findings)).toEqual([]);
    expect(findings.length).toBeGreaterThan(0);
  });
});

test("every attack has a name of its own", () => {
  const names = attacks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

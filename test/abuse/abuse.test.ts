import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { besidePostgres } from "../harness/servers/beside-postgres.ts";
import { freshRedis } from "../harness/servers/servers.ts";
import { tenOrganic } from "../harness/stubs/serper-stub.ts";
import { attacks } from "./all.ts";
import type { Attack, Finding } from "./attack.ts";
import { AttackStack, withAttackStack } from "./attack-stack.ts";

/** Short attacks, for what they gain and not for how fast others are served; `npm run abuse` strikes with full force. */

/** They leave a service as it was, so they attack the same one. Any other attack gets a service of its own. */
const onOneService = new Set([
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
]);
/** What these show takes longer than a test may; `npm run abuse` runs them. */
const withFullForceOnly = new Set(["half-open-inbox", "keyed-without-credit", "vanished-redis", "full-strength"]);
const short = attacks.filter(({ name }) => !withFullForceOnly.has(name));

const servers = () => ({ postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis });
const timeout = 180_000;
const attemptsMax = 3;
// A token's lookup times out after 1,500 ms. If a connection to Postgres takes this long, a broken promise says nothing about
// the service.
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

  test.each(short.filter(({ name }) => onOneService.has(name)))("$name", { timeout }, async (attack) => {
    stack.provider.otherwise = tenOrganic;
    const findings = await attack.run(stack, "quick");
    expect(notHeld(findings)).toEqual([]);
    expect(findings.length).toBeGreaterThan(0);
  });

  test.each(short.filter(({ name }) => !onOneService.has(name)))(
    "$name, on a service of its own",
    { timeout: attemptsMax * timeout },
    async (attack) => {
      const findings = await strike(attack);
      expect(notHeld(findings)).toEqual([]);
      expect(findings.length).toBeGreaterThan(0);
    },
  );
});

test("every attack has a name of its own", () => {
  const names = attacks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect([...onOneService, ...withFullForceOnly].filter((name) => !names.includes(name))).toEqual([]);
});

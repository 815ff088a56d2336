import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { freshRedis } from "../harness/servers/servers.ts";
import { attacks } from "./all.ts";
import type { Attack } from "./attack.ts";
import { AttackStack } from "./attack-stack.ts";
import { lookalikeHosts } from "./attacks/lookalike-hosts.ts";

/** Short attacks, for what they gain and not for how fast others are served; `npm run abuse` strikes with full force. */

const short: readonly Attack[] = [lookalikeHosts];

const servers = () => ({ postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis });
const timeout = 180_000;

describe("an attacker of the usual service gets nothing for free and stops no other caller", () => {
  let stack: AttackStack;
  beforeAll(async () => {
    stack = await AttackStack.open(servers());
  }, timeout);
  afterAll(() => stack.close());

  test.each(short.filter((attack) => attack.stack === undefined))("$name", { timeout }, async (attack) => {
    const findings = await attack.run(stack, "quick");
    expect(findings.length).toBeGreaterThan(0);
    expect(findings.filter(({ held }) => !held)).toEqual([]);
  });
});

test("every attack has a name of its own", () => {
  const names = attacks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

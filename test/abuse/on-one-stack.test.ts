import { afterAll, beforeAll, expect, test } from "vitest";
import { attacks } from "./all.ts";
import { AttackStack } from "./attack-stack.ts";
import { attackServers, notHeld, quickAttacks, strike } from "./quick.ts";

/** An attacker gets nothing for free and stops no other caller. */

let stack: AttackStack;
beforeAll(async () => {
  stack = await AttackStack.open(attackServers(), { workers: 2 });
});
afterAll(() => stack.close());

test.each(quickAttacks)("$name", async (attack) => {
  const findings = await strike(attack, stack);
  expect(notHeld(findings)).toEqual([]);
  expect(findings.length).toBeGreaterThan(0);
});

test("every attack has a name of its own", () => {
  const names = attacks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

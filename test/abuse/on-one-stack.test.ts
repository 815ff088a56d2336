import { afterAll, beforeAll, expect, test } from "vitest";
import { tenOrganic } from "../harness/stubs/serper-stub.ts";
import { attacks } from "./all.ts";
import { AttackStack } from "./attack-stack.ts";
import { openDoors } from "./open-doors.ts";
import { attackMsMax, attackServers, notHeld, onOneService } from "./quick.ts";

/** An attacker gets nothing for free and stops no other caller: the attacks that leave the service as it was. */

let stack: AttackStack;
beforeAll(async () => {
  stack = await AttackStack.open(attackServers(), { payments: true, settings: { TRUSTED_PROXIES: "1", ...openDoors } });
}, attackMsMax);
afterAll(() => stack.close());

test.each(onOneService)("$name", { timeout: attackMsMax }, async (attack) => {
  stack.provider.otherwise = tenOrganic;
  const findings = await attack.run(stack, "quick");
  expect(notHeld(findings)).toEqual([]);
  expect(findings.length).toBeGreaterThan(0);
});

test("every attack has a name of its own", () => {
  const names = attacks.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

import { expect, test } from "vitest";
import { notHeld } from "../faults/report.ts";
import { stackServers } from "../harness/servers/servers.ts";
import { attacks } from "./all.ts";
import { withAttackStack } from "./attack-stack.ts";

/** What does not depend on how fast the machine is: no free answer, no honest caller refused, no bound exceeded. */

test.each(attacks.filter(({ sharesStack }) => !sharesStack))("$name", async (attack) => {
  const findings = await withAttackStack(stackServers(), attack.stack, (stack) => attack.run(stack, "quick"));
  expect(notHeld(findings)).toEqual([]);
  expect(findings.length).toBeGreaterThan(0);
});

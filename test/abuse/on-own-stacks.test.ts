import { expect, test } from "vitest";
import { onOwnServices, notHeld, strike } from "./quick.ts";

/** An attacker gets nothing for free and stops no other caller: the attacks that leave a service other than it was. */

test.each(onOwnServices)("$name", async (attack) => {
  const findings = await strike(attack);
  expect(notHeld(findings)).toEqual([]);
  expect(findings.length).toBeGreaterThan(0);
});

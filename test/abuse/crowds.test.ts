import { expect, test } from "vitest";
import { attackMsMax, attemptsMax, crowds, notHeld, strike } from "./quick.ts";

/** An attacker gets nothing for free and stops no other caller: one caller or many take what others need. */

test.each(crowds)("$name", { timeout: attemptsMax * attackMsMax }, async (attack) => {
  const findings = await strike(attack);
  expect(notHeld(findings)).toEqual([]);
  expect(findings.length).toBeGreaterThan(0);
});

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { plantedBugs } from "./planted.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

test("every planted bug says what it is and what catches it, and still fits the code", () => {
  const bugs = plantedBugs();
  expect(bugs.length).toBeGreaterThanOrEqual(14);
  for (const { what, caughtBy, patch } of bugs) {
    expect(what).toMatch(/^[A-Z].*\.$/);
    expect(caughtBy).toMatch(/^(node test\/faults|vitest run test)\//);
    execFileSync("git", ["apply", "--check", patch], { cwd: root });
  }
});

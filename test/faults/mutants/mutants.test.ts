import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { mutants } from "./run.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

test("every mutant says what it is and what catches it, and still fits the code", () => {
  const bugs = mutants();
  expect(bugs.length).toBeGreaterThanOrEqual(14);
  for (const { what, caughtBy, patch } of bugs) {
    expect(what).toMatch(/^[A-Z].*\.$/);
    expect(caughtBy).toMatch(/^(node test\/faults|vitest run test)\//);
    execFileSync("git", ["apply", "--check", patch], { cwd: root });
  }
});

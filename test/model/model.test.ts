import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { run } from "../harness/processes/run.ts";
import { bugs } from "./bugs.ts";
import { asBuilt } from "./design.ts";
import { explore } from "./explore.ts";
import { scenarios } from "./scenarios.ts";

/** The small scenarios of the model. `npm run model` explores the others too. */

const bounds = { statesMax: 400_000, restAskedMax: 20_000 };
const quick = scenarios.filter(({ isQuick }) => isQuick);

function explored(name: string) {
  return explore({ ...(scenarios.find((one) => one.name === name) ?? never(name)), design: asBuilt }, bounds);
}

function never(name: string): never {
  throw new Error(`there is no scenario ${name}`);
}

describe("every order of steps and faults keeps the money right", () => {
  test.each(quick)("in the scenario: $name", ({ name }) => {
    const { isExhaustive, states, resting, violations } = explored(name);
    expect(violations).toEqual([]);
    expect(isExhaustive).toBe(true);
    expect(states).toBeGreaterThan(100);
    expect(resting).toBeGreaterThan(1);
  });
});

describe("the model finds a bug in the design", () => {
  test.each(bugs)("$name", ({ rule, config }) => {
    const { violations } = explore(config, { ...bounds, until: rule });
    expect(violations.map((violation) => violation.rule)).toContain(rule);
    expect(violations.find((violation) => violation.rule === rule)?.trace.length).toBeGreaterThan(2);
  });

  test("the same models without the bug break no rule", () => {
    const models = bugs.filter(({ config }) => config.keyed.length === 1);
    const broken = models.flatMap(({ config }) => explore({ ...config, design: asBuilt }, bounds).violations);
    expect(broken).toEqual([]);
  });
});

test("a violation is reported with a shortest trace", () => {
  const { rule = "", config } = bugs.find(({ name }) => name === "no sweeper") ?? {};
  if (!config) throw new Error("there is no such bug");
  const { violations } = explore(config, { ...bounds, until: rule });
  expect(violations).toEqual([
    {
      rule,
      trace: [
        "a caller sends A",
        "API of A: admit.lua: held",
        "the API of A is killed",
        "deadline, grace and fence of A pass",
      ],
    },
  ]);
});

test("the command reports what it explored, and fails if a name is unknown", async () => {
  const program = fileURLToPath(new URL("./main.ts", import.meta.url));
  const quiet = await run(program, ["--scenario", "nothing goes wrong"], {});
  expect(quiet.stdout).toMatch(/nothing goes wrong: unkeyed; no fault\n {2}\d+ states, .* exhaustive/);
  expect(quiet.exitCode).toBe(0);
  const bug = await run(program, ["--bug", "no sweeper"], {});
  expect(bug.stdout).toMatch(
    /design bug: no sweeper: found, .*\n {2}BROKEN: no hold is left\n {5}1\. a caller sends A/,
  );
  expect(await run(program, ["--scenario", "unknown"], {})).toMatchObject({ exitCode: 1, stdout: "" });
});

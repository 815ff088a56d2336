import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { run } from "../harness/processes/run.ts";
import { bugs } from "./bugs.ts";
import { asBuilt } from "./design.ts";
import { explore } from "./explore.ts";
import { scenarios } from "./scenarios.ts";

/** The small worlds of the model; `npm run model` goes through the others, too. */

const bounds = { statesMax: 400_000, restAskedMax: 20_000 };
const quick = scenarios.filter(({ isQuick }) => isQuick);

function explored(name: string) {
  const { keyed, balance, warm, takeOversMax, faults } = scenarios.find((one) => one.name === name) ?? never(name);
  return explore({ keyed, balance, warm, takeOversMax, faults, design: asBuilt }, bounds);
}

function never(name: string): never {
  throw new Error(`there is no scenario ${name}`);
}

describe("every order of everything keeps the money right", () => {
  test.each(quick)("where the scenario is: $name", ({ name }) => {
    const { isExhaustive, states, resting, violations } = explored(name);
    expect(violations).toEqual([]);
    expect(isExhaustive).toBe(true);
    expect(states).toBeGreaterThan(100);
    expect(resting).toBeGreaterThan(1);
  });
});

describe("a mistake in the design would be found", () => {
  test.each(bugs)("where $name", ({ rule, config }) => {
    const { violations } = explore(config, { ...bounds, until: rule });
    expect(violations.map((violation) => violation.rule)).toContain(rule);
    expect(violations.find((violation) => violation.rule === rule)?.trace.length).toBeGreaterThan(2);
  });

  test("and the same worlds without the mistake break no rule", () => {
    const worlds = bugs.filter(({ config }) => config.keyed.length === 1);
    const broken = worlds.flatMap(({ config }) => explore({ ...config, design: asBuilt }, bounds).violations);
    expect(broken).toEqual([]);
  });
});

test("the shortest way to a violation is told step by step", () => {
  const { rule = "", config } = bugs.find(({ name }) => name === "no sweeper") ?? {};
  if (!config) throw new Error("the bug is gone");
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

test("the command tells what it went through, and fails where a name is unknown", async () => {
  const program = fileURLToPath(new URL("./main.ts", import.meta.url));
  const gone = await run(program, ["--scenario", "nothing goes wrong"], {});
  expect(gone.stdout).toMatch(/nothing goes wrong: unkeyed; no fault\n {2}\d+ states, .* exhaustive/);
  expect(gone.exitCode).toBe(0);
  const planted = await run(program, ["--bug", "no sweeper"], {});
  expect(planted.stdout).toMatch(
    /planted: no sweeper: found, .*\n {2}BROKEN: no hold is left\n {5}1\. a caller sends A/,
  );
  expect(await run(program, ["--scenario", "unheard of"], {})).toMatchObject({ exitCode: 1, stdout: "" });
});

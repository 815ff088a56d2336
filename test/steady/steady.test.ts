import { expect, test } from "vitest";
import { run as runProgram } from "../harness/processes/run.ts";
import { repeat, type Run, summaryOf } from "./repeat.ts";

const passed: Run = { passed: true, output: "fine", ms: 1_000 };
const failed: Run = { passed: false, output: "expected 1 to be 2\n", ms: 3_000 };

async function repeated(times: number, outcomes: Run[]) {
  const said: string[] = [];
  const runs = await repeat({
    times,
    run: async () => outcomes.shift() ?? passed,
    say: (text) => void said.push(text),
  });
  return { said, runs, summary: summaryOf(runs, times) };
}

test("a file that always passes is run as often as asked, and its output is not printed", async () => {
  const { said, summary } = await repeated(3, []);
  expect(said).toEqual(["1/3 passed 1.0 s", "2/3 passed 1.0 s", "3/3 passed 1.0 s"]);
  expect(summary).toBe("Steady: 3 of 3 runs passed; shortest 1.0 s, median 1.0 s, longest 1.0 s.");
});

test("the first failure ends the runs, with its output", async () => {
  const { said, runs, summary } = await repeated(20, [passed, failed]);
  expect(runs).toHaveLength(2);
  expect(said).toEqual(["1/20 passed 1.0 s", "2/20 FAILED 3.0 s", "expected 1 to be 2"]);
  expect(summary).toMatch(/^Not steady: run 2 of 20 failed, after 1 that passed; /);
});

test("--help explains the command, and a call without a file is refused", async () => {
  const help = await runProgram("test/steady/main.ts", ["--help"], {});
  expect(help).toMatchObject({ exitCode: 0, stderr: "" });
  expect(help.stdout).toMatch(/--times <n>.*\(default: 20\)/);
  expect(await runProgram("test/steady/main.ts", [], {})).toMatchObject({ exitCode: 1, stdout: "" });
});

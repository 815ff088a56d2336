import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { startGuardedProcess } from "../../local/guarded-process.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));

/** One run of a test file. */
export interface Run {
  passed: boolean;
  output: string;
  ms: number;
}

/** Runs up to `times` times, until the first failure, and reports each run. @returns the runs. */
export async function repeat(options: {
  times: number;
  run: () => Promise<Run>;
  say: (text: string) => void;
}): Promise<Run[]> {
  const { times, run, say } = options;
  const runs: Run[] = [];
  while (runs.length < times) {
    const latest = await run();
    runs.push(latest);
    say(`${runs.length}/${times} ${latest.passed ? "passed" : "FAILED"} ${seconds(latest.ms)}`);
    if (latest.passed) continue;
    say(latest.output.trim());
    break;
  }
  return runs;
}

/** The closing line: how many runs passed, and how long they took. */
export function summaryOf(runs: readonly Run[], times: number): string {
  const durations = runs.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const [shortest = 0, median = 0, longest = 0] = [0, 0.5, 1].map(
    (part) => durations[Math.floor(part * (durations.length - 1))],
  );
  const spread = `shortest ${seconds(shortest)}, median ${seconds(median)}, longest ${seconds(longest)}`;
  const passed = runs.filter((run) => run.passed).length;
  if (passed === runs.length) return `Steady: ${passed} of ${times} runs passed; ${spread}.`;
  return `Not steady: run ${runs.length} of ${times} failed, after ${passed} that passed; ${spread}.`;
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** Runs one test file, as `npx vitest run FILE` does. An unknown name is a failed run. */
export async function runTestFile(file: string): Promise<Run> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [vitest, "run", file], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const exitCode = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { passed: (await exitCode) === 0, output: stdout + stderr, ms: performance.now() - startedAt };
}

/** Keeps this many busy loops running, each in its own process, while `use` runs. */
export async function withLoad<T>(loops: number, use: () => Promise<T>): Promise<T> {
  const started = await Promise.all(
    Array.from({ length: loops }, () =>
      startGuardedProcess(process.execPath, ["--eval", "for (;;);"], { stdio: "ignore" }),
    ),
  );
  try {
    return await use();
  } finally {
    await Promise.all(started.map((loop) => loop.stop()));
  }
}

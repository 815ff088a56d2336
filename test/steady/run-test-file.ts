import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Run } from "./repeat.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));

/** Runs one test file as `npx vitest run FILE` does. A name that no test file has is a failed run. */
export async function runTestFile(file: string): Promise<Run> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [vitest, "run", file], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const exitCode = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { passed: (await exitCode) === 0, output: stdout + stderr, ms: performance.now() - startedAt };
}

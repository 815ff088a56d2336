import { mkdirSync, writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

const slowestShown = 5;
const cache = new URL("../../node_modules/.cache/", import.meta.url);

/**
 * Ends a whole run with its slowest files, the tests that failed, and one line of counts. After a run of few files it
 * says nothing. Each run leaves the paths of its failed files for `npm run test:failed`.
 */
export class ClosingLines implements Reporter {
  #startedAt = 0;

  onTestRunStart(): void {
    this.#startedAt = performance.now();
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    mkdirSync(cache, { recursive: true });
    writeFileSync(new URL("failed-tests", cache), failedIn(modules).join("\n"));
    if (modules.length <= slowestShown) return;
    process.stdout.write(
      `${closingLines(modules, { errors: errors.length, ms: performance.now() - this.#startedAt })}\n`,
    );
  }
}

const failedIn = (modules: readonly TestModule[]) =>
  modules.filter((module) => module.state() === "failed").map((module) => module.relativeModuleId);

function closingLines(modules: readonly TestModule[], run: { errors: number; ms: number }): string {
  const slowest = modules
    .map((module) => ({ path: module.relativeModuleId, ms: module.diagnostic().duration }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, slowestShown)
    .map(({ path, ms }) => `  ${seconds(ms).padStart(7)}  ${path}`);
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const inState = (state: string) => tests.filter((test) => test.result().state === state);
  const failedFiles = failedIn(modules);
  const failedTests = inState("failed").map((test) => `  ${test.module.relativeModuleId} > ${test.fullName}`);
  const counts = `${modules.length} files (${failedFiles.length} failed), ${inState("passed").length} tests passed, ${failedTests.length} failed, ${inState("skipped").length} skipped`;
  const failures = failedTests.length > 0 ? ["", "Failed tests:", ...failedTests] : [];
  const verdict = failedTests.length + failedFiles.length + run.errors > 0 ? "FAILED" : "PASSED";
  return ["Slowest files:", ...slowest, ...failures, "", `${verdict}: ${counts}, in ${seconds(run.ms)}`].join("\n");
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

import type { Reporter, TestModule } from "vitest/node";

const slowestShown = 5;

/** Ends a whole run with its slowest files and one line of counts. After a run of few files it says nothing. */
export class ClosingLines implements Reporter {
  #startedAt = 0;

  onTestRunStart(): void {
    this.#startedAt = performance.now();
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    if (modules.length <= slowestShown) return;
    process.stdout.write(
      `${closingLines(modules, { errors: errors.length, ms: performance.now() - this.#startedAt })}\n`,
    );
  }
}

function closingLines(modules: readonly TestModule[], run: { errors: number; ms: number }): string {
  const slowest = modules
    .map((module) => ({ path: module.relativeModuleId, ms: module.diagnostic().duration }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, slowestShown)
    .map(({ path, ms }) => `  ${seconds(ms).padStart(7)}  ${path}`);
  const states = modules.flatMap((module) => [...module.children.allTests()].map((each) => each.result().state));
  const count = (state: string) => states.filter((each) => each === state).length;
  const failedFiles = modules.filter((module) => module.state() === "failed").length;
  const failed = count("failed") + failedFiles + run.errors > 0;
  const counts = `${modules.length} files (${failedFiles} failed), ${count("passed")} tests passed, ${count("failed")} failed, ${count("skipped")} skipped`;
  return ["Slowest files:", ...slowest, "", `${failed ? "FAILED" : "PASSED"}: ${counts}, in ${seconds(run.ms)}`].join(
    "\n",
  );
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { codeLoading } from "./test/harness/processes/code-loading.ts";
import { ClosingLines } from "./test/harness/reporter.ts";
import { testFilesByProject } from "./test/projects.ts";

// Each of the vitest workers loads the same code.
process.env.NODE_COMPILE_CACHE = codeLoading.NODE_COMPILE_CACHE;

const files = testFilesByProject();
const globalSetup = ["test/harness/servers/servers.ts"]; // A Postgres.

// Each worker loads the code anew. Unit tests rarely wait, and the others often: with eight workers they keep two cores busy for
// seven eighths of the time, with six for four fifths.
const unitWorkers = availableParallelism() + 1;
const integrationWorkers = 8;

/**
 * The files that take longest first, so that none of them is left alone at the end. Those of the usual service come last: the one of
 * each worker takes 1.5 % of a core while it waits, so it starts late.
 */
class LongestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer, which returns a new array.
    const sorted = await super.sort(specifications);
    const rank = ({ moduleId }: TestSpecification) =>
      [
        /\/(shots\/pages|account-tasks|deploy-rules)\.test\.ts$/,
        /\/test\/(faults|abuse|drill)\//,
        /\/(bad-inputs\/pages|clients\/conformance|doors\/clients|mcp\/delivery|local\/start|commands\/(golden|erase)|auto-topups\/stripe-away|worker\/low-balance)\.test\.ts$/,
        /\/test\/journeys\//,
        /./,
      ].findIndex((part) => part.test(moduleId));
    const isLate = ({ moduleId }: TestSpecification) =>
      Number(readFileSync(moduleId, "utf8").includes("/usual-stack.ts"));
    return sorted.toSorted((a, b) => isLate(a) - isLate(b) || rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    // Node strips the types itself, as in production: what fails there fails here.
    experimental: { viteModuleRunner: false },
    pool: "forks",
    // Bounds for tests that would never end. They are far above what the longest test needs on a slow machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    sequence: { sequencer: LongestFirst },
    // One line per file.
    reporters: ["default", new ClosingLines()],
    expect: { poll: { timeout: 120_000 } },
    slowTestThreshold: Number.POSITIVE_INFINITY,
    // The projects run one after the other. A file that is not isolated shares its worker's loaded code with other files.
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: files.unit,
          isolate: false,
          maxWorkers: unitWorkers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "integration",
          include: files.integration,
          globalSetup,
          isolate: false,
          maxWorkers: integrationWorkers,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "long", include: files.long, globalSetup, maxWorkers: 4, sequence: { groupOrder: 2 } },
      },
    ],
  },
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { becomes } from "../harness/assertions/eventually.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { run } from "../harness/processes/run.ts";
import { memory, throughput } from "./load-commands.ts";
import { canMeasureProcesses } from "./processes/measure-processes.ts";
import { readResults } from "./results.ts";

/** A folder that the test removes. Postgres may run as another user, who needs access. */
async function temporaryFolder(): Promise<string> {
  const folder = await GuardedFolder.create("serpmill-test-bench-");
  onTestFinished(() => folder.remove());
  chmodSync(folder.path, 0o755);
  return folder.path;
}

test("a case is measured beside bare BullMQ, as a table and as JSON, with every figure", async () => {
  const json = join(await temporaryFolder(), "results.json");
  const [printed, said]: [string[], string[]] = [[], []];
  await throughput(
    { rounds: 1, seconds: 1, json, only: ["connections-16"] },
    {
      print: (text) => void printed.push(text),
      say: (line) => void said.push(line),
      interrupted: new AbortController().signal,
    },
  );
  expect(said.at(-1)).toMatch(/^connections-16, round 1 of 1, bullmq: /);
  expect(printed.join("")).toMatch(
    /^\| connections-16 +\| serpmill +\| [\d.]+ +\| [\d.]+–[\d.]+ +(\| [\d.]+ +){3}\| – +\|$/m,
  );
  const [serpmill, bullmq] = readResults(json).measured;
  expect(serpmill).toMatchObject({ case: "connections-16", contestant: "serpmill" });
  expect(bullmq).toMatchObject({ case: "connections-16", contestant: "bullmq" });
  const [figures] = serpmill?.rounds ?? [];
  const positive = [figures?.p50Ms, figures?.redisCommands, figures?.redisScriptUs, figures?.postgresStatements];
  const kinds = ["api", "worker", "redis", "postgres", "generator"] as const;
  const ofProcesses = kinds.flatMap((kind) => [figures?.cpuUs[kind], figures?.memoryBytes[kind]]);
  if (canMeasureProcesses) positive.push(...ofProcesses);
  expect(positive.filter((figure) => figure === undefined || !(figure > 0))).toEqual([]);
  expect(figures?.p99Ms).toBeGreaterThanOrEqual(figures?.p50Ms ?? 0);
});

test.runIf(canMeasureProcesses)(
  "the memory of both processes is printed idle and after searches, with the ratio of the last reading to the first",
  async () => {
    const printed: string[] = [];
    const output = { print: (text: string) => void printed.push(text), say: () => undefined };
    await memory(
      { searches: 20, seconds: 1, container: true },
      { ...output, interrupted: new AbortController().signal },
    );
    const [, , idle, ...rows] = printed.join("").trim().split("\n").map(cellsOf);
    expect(idle?.[0]).toBe("0");
    expect(Number(rows[0]?.[0])).toBeGreaterThan(0);
    for (const bytes of [...(idle ?? []).slice(1), ...(rows[0] ?? []).slice(1)])
      expect(Number(bytes)).toBeGreaterThan(50);
    expect(rows.at(-1)).toEqual([
      "last over second",
      expect.stringMatching(/^\d\.\d\d$/),
      expect.stringMatching(/^\d\.\d\d$/),
    ]);
  },
);

const cellsOf = (row: string) =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

test("an unknown case is refused with a list of those that exist", async () => {
  const { exitCode, stderr } = await run("test/bench/main.ts", ["throughput", "--only", "nothing"], {});
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.stringMatching(/^There is no case nothing\. Known: connections-1, .*refused-401/),
  });
});

test("a folder that is no yardstick is refused before anything is measured", async () => {
  const { exitCode, stderr } = await run("test/bench/main.ts", ["latency", "--yardstick", await temporaryFolder()], {});
  const message = "The yardstick's folder lacks package.json, api.js, worker.js, seed.js.\n";
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: message });
});

test.runIf(canMeasureProcesses)(
  "Ctrl-C ends a run with every process that it has started, and removes its folders",
  async () => {
    const folder = await temporaryFolder();
    const program = fileURLToPath(new URL("./main.ts", import.meta.url));
    const args = [program, "throughput", "--only", "connections-16", "--seconds", "60"];
    // `env` becomes the program.
    const bench = spawn("env", [`TMPDIR=${folder}`, process.execPath, ...args], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    onTestFinished(() => void bench.kill("SIGKILL"));
    const lines = createInterface(bench.stderr);
    // By then the service runs, with its servers and the load generator.
    for await (const line of lines) if (line === "starting bullmq") break;
    const started = treeOf(bench.pid ?? 0);
    expect(started.length).toBeGreaterThan(6);
    bench.kill("SIGINT");
    const [exitCode] = await once(bench, "exit");
    expect(exitCode).toBe(130);
    const isGone = async () => !started.some((pid) => existsSync(`/proc/${pid}`)) && readdirSync(folder).length === 0;
    expect(await becomes(isGone, 20_000)).toBe(true);
  },
);

function treeOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(treeOf)];
}

import { expect, test } from "vitest";
import { memory, throughput } from "./load-commands.ts";
import { canMeasureProcesses } from "./processes/measure-processes.ts";

test("a case is measured beside bare BullMQ, with every figure", async () => {
  const [printed, said]: [string[], string[]] = [[], []];
  const [serpmill, bullmq] = await throughput(
    { rounds: 1, seconds: 1, only: ["connections-16"] },
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

import { expect, test } from "vitest";
import { evenReport } from "./even.ts";
import { capacityReport, latencyReport, throughputReport } from "./report.ts";
import type { Measured, Round } from "./results.ts";

const round = (searchesPerSecond: number, apiUs = 400): Round => ({
  answered: 1_000,
  searchesPerSecond,
  p50Ms: 10,
  p99Ms: 20,
  maxMs: 30,
  cpuUs: { api: apiUs, worker: 300, redis: 100 },
  memoryBytes: { api: 200_000_000 },
  redisCommands: 40,
  redisReads: 10,
  redisScriptUs: 100,
  redisDataBytes: 3_000_000,
});

const measured = (contestant: Measured["contestant"], rates: number[], more: Partial<Measured> = {}): Measured => ({
  case: "connections-64",
  contestant,
  rounds: rates.map((rate) => round(rate)),
  ...more,
});

/** The rows of a table without its titles, each as its cells with a blank between them. */
const rowsOf = (table: string) =>
  table
    .trim()
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim())
        .join(" "),
    );

test("the report has medians, the spread of the rounds, and ratios to what carried the same load", () => {
  const [speed = "", cost = ""] = throughputReport([
    measured("serpmill", [1_000, 900, 1_500]),
    measured("bullmq", [2_000, 2_000, 2_100]),
  ]).split("\n\n");
  expect(rowsOf(speed)[0]).toBe("connections-64 serpmill 1000 900–1500 10.0 20.0 0.50 –");
  expect(rowsOf(cost)[0]).toMatch(/^connections-64 serpmill 800 400 300 100 – /);
});

test("the CPU of a search is reported as core-hours of a million searches and as searches that a core carries", () => {
  const keyed = { ...measured("serpmill", []), case: "keyed", rounds: [round(1_000, 1_200)] };
  expect(rowsOf(capacityReport([measured("serpmill", [1_000]), measured("bullmq", [2_000]), keyed]))).toEqual([
    "connections-64 0.22 1.00 1250 2500 3333 10000 –",
    "keyed 0.44 2.00 625 833 3333 10000 –",
  ]);
});

test("the latency of a slow provider is reported with the time that the service adds, and with its refusals", () => {
  const rounds = [{ ...round(900), p50Ms: 1_040, p99Ms: 1_200, refusedPerSecond: 12, refusedP99Ms: 8 }];
  const slow = { ...measured("serpmill", []), case: "latency", providerMs: 1_000, rounds };
  const figures = "900 12.0 8.00 1040 1200 30.0 – 40.0 200";
  expect(rowsOf(latencyReport([slow, { ...slow, ratePerSecond: 990, shareOfPeak: 1.1 }]))).toEqual([
    `serpmill peak – ${figures}`,
    `serpmill 110 % 990 ${figures}`,
  ]);
});

test("even arrivals are reported without the provider's time and the idle processes' cost, and relative to the yardstick", () => {
  const idle = { cpuUsPerSecond: { api: 2_000, redis: 4_000 }, redisReadsPerSecond: 100, redisCommandsPerSecond: 200 };
  const [own, floor] = (["serpmill", "yardstick"] as const).map((contestant, at) =>
    measured(contestant, [], {
      case: "1 × 1, 10/s",
      ratePerSecond: 50,
      idle,
      rounds: [505, 515, 530].map((p99Ms) => ({ ...round(50), p50Ms: 504 - at, p99Ms: p99Ms - 5 * at })),
    }),
  );
  if (!own || !floor) throw new Error("there are two");
  const [loaded = "", atRest = ""] = evenReport([own, floor]).split("\n\n");
  expect(rowsOf(loaded)).toEqual([
    "1 × 1, 10/s serpmill 4.00 1.33 15.0 1.50 680 1.00 360 300 20.0 – 8.00 36.0 5.00–30.0",
    "1 × 1, 10/s yardstick 3.00 – 10.0 – 680 – 360 300 20.0 – 8.00 36.0 0.00–25.0",
  ]);
  expect(rowsOf(atRest)).toEqual(["serpmill", "yardstick"].map((name) => `1 × 1 ${name} 2.00 0.00 4.00 0.00 100`));
});

import { formatTable } from "../harness/format-table.ts";
import { type Measured, medianOf, type Round, serviceCpuUs, spreadOf } from "./results.ts";

type Column = readonly [title: string, figure: (round: Round) => number | undefined];

const bytesPerMb = 1_000_000;

/** CPU of a search in µs, of the processes of each kind. */
const cpuColumns: readonly Column[] = [
  ["API", ({ cpuUs }) => cpuUs.api],
  ["worker", ({ cpuUs }) => cpuUs.worker],
  ["Redis", ({ cpuUs }) => cpuUs.redis],
  ["Postgres", ({ cpuUs }) => cpuUs.postgres],
];

/** Two tables: speed, beside the other contestants, and the cost of a search. All figures are medians of the rounds. */
export function throughputReport(measured: readonly Measured[]): string {
  return `${speedTable(measured)}\n${costTable(measured)}`;
}

/** One line about a round, for the progress. */
export function describeRound({ searchesPerSecond, refusedPerSecond, p50Ms, p99Ms }: Round): string {
  const refused = refusedPerSecond ? `, refused ${formatNumber(refusedPerSecond)}/s` : "";
  return `${formatNumber(searchesPerSecond)}/s${refused}, p50 ${formatNumber(p50Ms)} ms, p99 ${formatNumber(p99Ms)} ms`;
}

function speedTable(measured: readonly Measured[]): string {
  const titles = ["case", "contestant", "searches/s", "from–to", "p50 ms", "p99 ms", "× BullMQ", "× yardstick"];
  const rows = measured.map((one) => {
    const [from, to] = spreadOf(one);
    const rivals = (["bullmq", "yardstick"] as const).map((name) => {
      const rival = measured.find((other) => other.case === one.case && other.contestant === name);
      return rival === one ? undefined : ratioOf(rateOf(rival), rateOf(one));
    });
    return [
      one.case,
      one.contestant,
      formatFigure(rateOf(one)),
      `${formatNumber(from)}–${formatNumber(to)}`,
      formatFigure(medianOf(one, ({ p50Ms }) => p50Ms)),
      formatFigure(medianOf(one, ({ p99Ms }) => p99Ms)),
      ...rivals.map((ratio) => ratio?.toFixed(2) ?? "–"),
    ];
  });
  return formatTable(titles, rows);
}

const costColumns: readonly Column[] = [
  ["CPU µs: all", serviceCpuUs],
  ...cpuColumns,
  ["generator", ({ cpuUs }) => cpuUs.generator],
  ["Redis commands", ({ redisCommands }) => redisCommands],
  ["in scripts µs", ({ redisScriptUs }) => redisScriptUs],
  ["Postgres statements", ({ postgresStatements }) => postgresStatements],
  ["data in Redis MB", ({ redisDataBytes }) => redisDataBytes / bytesPerMb],
  ["memory MB: API", ({ memoryBytes }) => mb(memoryBytes.api)],
  ["worker", ({ memoryBytes }) => mb(memoryBytes.worker)],
  ["Redis", ({ memoryBytes }) => mb(memoryBytes.redis)],
  ["Postgres", ({ memoryBytes }) => mb(memoryBytes.postgres)],
];

function costTable(measured: readonly Measured[]): string {
  const titles = ["case", "contestant", ...costColumns.map(([title]) => title)];
  const rows = measured.map((one) => [
    one.case,
    one.contestant,
    ...costColumns.map(([, figure]) => formatFigure(medianOf(one, figure))),
  ]);
  return formatTable(titles, rows);
}

const mb = (bytes: number | undefined) => (bytes === undefined ? undefined : bytes / bytesPerMb);

const usPerSecond = 1_000_000;
/** Core-hours that a million searches of 1 µs take. */
const hoursPerMillionUs = 1 / 3_600;
// A process with a smaller share of the CPU is never the bottleneck, and its figure would be mostly noise.
const shareMin = 0.05;
const usualCase = "connections-64";

/**
 * What the service's CPU means for machines: the core-hours of a million searches, relative to those of the usual case, and how
 * many searches per second one busy core carries, also of each kind of process that takes a share that matters. Empty where CPU
 * is not measured.
 */
export function capacityReport(measured: readonly Measured[]): string {
  const own = measured.filter((one) => one.contestant === "serpmill" && medianOf(one, serviceCpuUs) !== undefined);
  if (own.length === 0) return "";
  const usual = own.find((one) => one.case === usualCase);
  const titles = [
    "case",
    "core-hours a million",
    `× ${usualCase}`,
    "a core carries/s: all",
    ...cpuColumns.map(([title]) => title),
  ];
  const rows = own.map((one) => {
    const us = medianOf(one, serviceCpuUs) ?? 0;
    return [
      one.case,
      formatFigure(us * hoursPerMillionUs),
      formatFigure(ratioOf(usual && medianOf(usual, serviceCpuUs), us)),
      formatFigure(usPerSecond / us),
      ...cpuColumns.map(([, cpuUs]) => {
        const ownUs = medianOf(one, cpuUs) ?? 0;
        return formatFigure(ownUs < us * shareMin ? undefined : usPerSecond / ownUs);
      }),
    ];
  });
  return formatTable(titles, rows);
}

const latencyColumns: readonly Column[] = [
  ["answered/s", ({ searchesPerSecond }) => searchesPerSecond],
  ["refused/s", ({ refusedPerSecond }) => refusedPerSecond],
  ["refused p99 ms", ({ refusedP99Ms }) => refusedP99Ms],
  ["p50 ms", ({ p50Ms }) => p50Ms],
  ["p99 ms", ({ p99Ms }) => p99Ms],
  ["max ms", ({ maxMs }) => maxMs],
  ["sent late p99 ms", ({ sentLateP99Ms }) => sentLateP99Ms],
];
/** What the service adds to the time of the provider. */
const addedColumns = (providerMs: number): readonly Column[] => [
  ["added p50 ms", ({ p50Ms }) => p50Ms - providerMs],
  ["added p99 ms", ({ p99Ms }) => p99Ms - providerMs],
];

/** A table of the peak, and of the latencies at each rate: medians of the rounds. */
export function latencyReport(measured: readonly Measured[]): string {
  const providerMs = measured.find((one) => one.providerMs !== undefined)?.providerMs;
  const shown = providerMs === undefined ? latencyColumns : [...latencyColumns, ...addedColumns(providerMs)];
  const rows = measured.map((one) => [
    one.contestant,
    one.shareOfPeak === undefined ? "peak" : `${Math.round(one.shareOfPeak * 100)} %`,
    formatFigure(one.ratePerSecond),
    ...shown.map(([, figure]) => formatFigure(medianOf(one, figure))),
  ]);
  return formatTable(["contestant", "share of peak", "due/s", ...shown.map(([title]) => title)], rows);
}

const rateOf = (one: Measured | undefined) => one && medianOf(one, ({ searchesPerSecond }) => searchesPerSecond);

/** `one` relative to `reference`; undefined without either. */
export const ratioOf = (reference: number | undefined, one: number | undefined): number | undefined =>
  reference === undefined || one === undefined || reference === 0 ? undefined : one / reference;

/** A figure with at least three digits; a dash if it is absent. */
export const formatFigure = (value: number | undefined): string => (value === undefined ? "–" : formatNumber(value));

/** A number with as many decimals as its size needs. */
export const formatNumber = (value: number): string => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

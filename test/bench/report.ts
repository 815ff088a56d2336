import { formatTable } from "../harness/format-table.ts";
import { type Measured, medianOf, type Round, serviceCpuUs, spreadOf } from "./results.ts";

const bytesPerMb = 1_000_000;

/** Two tables: speed, with the other contestants beside it, and what a search costs. All figures are medians of the rounds. */
export function throughputReport(measured: readonly Measured[]): string {
  return `${speedTable(measured)}\n${costTable(measured)}`;
}

/** One round on one line, for the progress. */
export function describeRound({ searchesPerSecond, refusedPerSecond, p50Ms, p99Ms }: Round): string {
  const refused = refusedPerSecond ? `, refused ${formatNumber(refusedPerSecond)}/s` : "";
  return `${formatNumber(searchesPerSecond)}/s${refused}, p50 ${formatNumber(p50Ms)} ms, p99 ${formatNumber(p99Ms)} ms`;
}

function speedTable(measured: readonly Measured[]): string {
  const titles = ["case", "contestant", "searches/s", "from–to", "p50 ms", "p99 ms", "× BullMQ", "× yardstick"];
  const rateOf = (one: Measured | undefined) => one && medianOf(one, ({ searchesPerSecond }) => searchesPerSecond);
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

const costColumns: readonly [title: string, figure: (round: Round) => number | undefined][] = [
  ["CPU µs: all", serviceCpuUs],
  ["API", ({ cpuUs }) => cpuUs.api],
  ["worker", ({ cpuUs }) => cpuUs.worker],
  ["Redis", ({ cpuUs }) => cpuUs.redis],
  ["Postgres", ({ cpuUs }) => cpuUs.postgres],
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

/** `one` relative to `reference`; undefined without either. */
export const ratioOf = (reference: number | undefined, one: number | undefined): number | undefined =>
  reference === undefined || one === undefined || reference === 0 ? undefined : one / reference;

/** A figure with three digits at least; a dash where it is absent. */
export const formatFigure = (value: number | undefined): string => (value === undefined ? "–" : formatNumber(value));

/** A number with as many decimals as matter for its size. */
export const formatNumber = (value: number): string => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

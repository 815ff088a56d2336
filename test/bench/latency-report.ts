import { formatTable } from "../harness/format-table.ts";
import { formatFigure } from "./report.ts";
import { type Measured, medianOf, type Round } from "./results.ts";

type Column = [title: string, figure: (round: Round, providerMs: number) => number | undefined];

const columns: readonly Column[] = [
  ["answered/s", ({ searchesPerSecond }) => searchesPerSecond],
  ["refused/s", ({ refusedPerSecond }) => refusedPerSecond],
  ["refused p99 ms", ({ refusedP99Ms }) => refusedP99Ms],
  ["p50 ms", ({ p50Ms }) => p50Ms],
  ["p99 ms", ({ p99Ms }) => p99Ms],
  ["max ms", ({ maxMs }) => maxMs],
  ["sent late p99 ms", ({ sentLateP99Ms }) => sentLateP99Ms],
];
/** What the service adds to the time of the provider. */
const addedColumns: readonly Column[] = [
  ["added p50 ms", ({ p50Ms }, providerMs) => p50Ms - providerMs],
  ["added p99 ms", ({ p99Ms }, providerMs) => p99Ms - providerMs],
];

/** A table of the peak, and of the latencies at each rate: medians of the rounds. */
export function latencyReport(measured: readonly Measured[]): string {
  const hasProvider = measured.some(({ providerMs }) => providerMs !== undefined);
  const shown = hasProvider ? [...columns, ...addedColumns] : columns;
  const rows = measured.map((one) => [
    one.contestant,
    one.shareOfPeak === undefined ? "peak" : `${Math.round(one.shareOfPeak * 100)} %`,
    formatFigure(one.ratePerSecond),
    ...shown.map(([, figure]) => formatFigure(medianOf(one, (round) => figure(round, one.providerMs ?? 0)))),
  ]);
  return formatTable(["contestant", "share of peak", "due/s", ...shown.map(([title]) => title)], rows);
}

import { median } from "d3-array";
import { formatTable } from "../harness/format-table.ts";
import { openPostgres } from "./contestants/durable-servers.ts";
import type { CaseLoad, Contestant } from "./contestants/contestant.ts";
import { openSerpmill } from "./contestants/serpmill.ts";
import { openYardstick } from "./contestants/yardstick.ts";
import { measureRound } from "./measure-round.ts";
import { describeRound, formatFigure } from "./report.ts";
import { type Measured, medianOf } from "./results.ts";
import type { Run } from "./run.ts";

/** The rates at which latency is measured, as shares of the peak. */
const shares = [0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1];

const search = { request: "search", callers: "hundred", status: 200 } as const;
/** The connections with which the peak is measured, and at fixed rates. */
interface Connections {
  atPeak: number;
  atRate: number;
}
// At fixed rates far more than are busy below the peak, so that requests wait in the service and not before it.
const withoutProvider: Connections = { atPeak: 64, atRate: 256 };
// Each search keeps its connection busy for as long as the provider takes.
const withProvider: Connections = { atPeak: 1_000, atRate: 2_000 };
const warmUpSeconds = 3;

export interface LatencyOptions {
  rounds: number;
  seconds: number;
  yardstick?: string;
  /** The delay of a provider that is asked over HTTP. Without it, workers make answers up. */
  providerMs?: number;
}

/**
 * Measures the latency at fixed arrival rates, from a tenth of the peak to beyond it. The peak is what connections get that
 * each wait for their answer. Latency counts from the moment at which a request was due.
 */
export async function measureLatency(run: Run, options: LatencyOptions): Promise<Measured[]> {
  const { generator, shutdown } = run;
  const postgres = await openPostgres(shutdown);
  const { providerMs } = options;
  const stage = { apis: 1, workers: 1, ...(providerMs !== undefined && { providerMs }) };
  const connections = providerMs === undefined ? withoutProvider : withProvider;
  const contestants: Contestant[] = [await openSerpmill({ stage, postgres, generator, shutdown })];
  if (options.yardstick !== undefined) contestants.push(await openYardstick(options.yardstick, generator, shutdown));
  const peaks = await measurePeaks(run, contestants, { ...options, connections: connections.atPeak });
  const measured: Measured[] = [];
  for (const shareOfPeak of shares) {
    const points = contestants.map((contestant, at) => {
      const ratePerSecond = Math.max(1, Math.round((peaks[at] ?? 0) * shareOfPeak));
      return { contestant, ratePerSecond, rounds: [] as Measured["rounds"] }; // Otherwise an array of nothing.
    });
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const { contestant, ratePerSecond, rounds } of points) {
        const load: CaseLoad = { ...search, connections: connections.atRate, seconds: options.seconds, ratePerSecond };
        const figures = await measureRound(contestant, load);
        rounds.push(figures);
        const share = Math.round(shareOfPeak * 100);
        run.say(`${share} % of the peak, round ${round}, ${contestant.name}: ${describeRound(figures)}`);
      }
    }
    for (const { contestant, ratePerSecond, rounds } of points)
      measured.push({ case: "latency", contestant: contestant.name, ratePerSecond, shareOfPeak, rounds });
  }
  return measured;
}

/** The searches per second of each contestant without a fixed rate: the median of the rounds, in which they take turns. */
async function measurePeaks(
  { say }: Run,
  contestants: readonly Contestant[],
  { rounds, seconds, connections }: LatencyOptions & { connections: number },
): Promise<number[]> {
  const load = { ...search, connections };
  for (const contestant of contestants) await measureRound(contestant, { ...load, seconds: warmUpSeconds });
  const rates = contestants.map((): number[] => []);
  for (let round = 1; round <= rounds; round += 1) {
    for (const [at, contestant] of contestants.entries()) {
      const { searchesPerSecond } = await measureRound(contestant, { ...load, seconds });
      rates[at]?.push(searchesPerSecond);
      say(`peak, round ${round}, ${contestant.name}: ${formatFigure(searchesPerSecond)}/s`);
    }
  }
  return rates.map((ofOne) => median(ofOne) ?? 0);
}

/** A table of the latencies at each rate: medians of the rounds. */
export function latencyReport(measured: readonly Measured[]): string {
  const titles = [
    "contestant",
    "share of peak",
    "due/s",
    "answered/s",
    "p50 ms",
    "p99 ms",
    "max ms",
    "sent late p99 ms",
  ];
  const rows = measured.map((one) => [
    one.contestant,
    `${Math.round((one.shareOfPeak ?? 0) * 100)} %`,
    formatFigure(one.ratePerSecond),
    formatFigure(medianOf(one, ({ searchesPerSecond }) => searchesPerSecond)),
    formatFigure(medianOf(one, ({ p50Ms }) => p50Ms)),
    formatFigure(medianOf(one, ({ p99Ms }) => p99Ms)),
    formatFigure(medianOf(one, ({ maxMs }) => maxMs)),
    formatFigure(medianOf(one, ({ sentLateP99Ms }) => sentLateP99Ms)),
  ]);
  return formatTable(titles, rows);
}

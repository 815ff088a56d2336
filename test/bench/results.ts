import type { ContestantName, ProcessKind } from "./contestants/contestant.ts";
import type { LoadResult } from "./load/load.ts";

type ByProcess = Partial<Record<ProcessKind, number>>;

/** One measurement. Figures that the system or the server does not report are absent. "Per search" means per answer. */
export interface Round extends Omit<LoadResult, "failed" | "firstFailure"> {
  /** CPU per search, of all processes of a kind together. */
  cpuUs: ByProcess;
  /** Memory at the end, of all processes of a kind together. */
  memoryBytes: ByProcess;
  redisCommands: number;
  redisReads: number;
  redisScriptUs: number;
  redisDataBytes: number;
  postgresStatements?: number;
}

export interface Idle {
  /** CPU per second, of all processes of a kind together. */
  cpuUsPerSecond: ByProcess;
  redisReadsPerSecond: number;
  redisCommandsPerSecond: number;
}

export interface Measured {
  case: string;
  contestant: ContestantName;
  /** With a fixed arrival rate: the rate, and its share of the peak. */
  ratePerSecond?: number;
  shareOfPeak?: number;
  /** The delay of a provider over HTTP, in measurements of latency. */
  providerMs?: number;
  rounds: Round[];
  /** What the processes took before the load, where that was measured. */
  idle?: Idle;
}

/** The median; undefined of no numbers. */
export function median(numbers: readonly number[]): number | undefined {
  const sorted = numbers.toSorted((one, other) => one - other);
  const [low, high = low] = sorted.slice(Math.floor((sorted.length - 1) / 2), Math.floor(sorted.length / 2) + 1);
  return low === undefined || high === undefined ? undefined : (low + high) / 2;
}

/** The median of a figure over the rounds; undefined if no round has it. */
export const medianOf = ({ rounds }: Measured, figure: (round: Round) => number | undefined): number | undefined =>
  median(rounds.map(figure).filter((value) => value !== undefined));

/** The smallest and the largest searches per second of the rounds. */
export function spreadOf({ rounds }: Measured): [number, number] {
  const rates = rounds.map(({ searchesPerSecond }) => searchesPerSecond);
  return [Math.min(...rates), Math.max(...rates)];
}

/** CPU of the service per search in µs: everything but the load generator and the provider. */
export function serviceCpuUs({ cpuUs }: Round): number | undefined {
  const { api, worker, redis, postgres } = cpuUs;
  if (api === undefined || worker === undefined) return undefined;
  return api + worker + (redis ?? 0) + (postgres ?? 0);
}

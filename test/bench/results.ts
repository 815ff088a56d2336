import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { z } from "zod";
import { contestantNames, processKinds } from "./contestants/contestant.ts";
import { loadResultSchema } from "./load/load.ts";

const byProcess = z.partialRecord(z.enum(processKinds), z.number());

/** One measurement. Figures that the system or the server does not report are absent. "Per search" means per answer. */
const roundSchema = loadResultSchema.omit({ failed: true, firstFailure: true }).extend({
  /** CPU per search, of all processes of a kind together. */
  cpuUs: byProcess,
  /** Memory at the end, of all processes of a kind together. */
  memoryBytes: byProcess,
  redisCommands: z.number(),
  redisReads: z.number(),
  redisScriptUs: z.number(),
  redisDataBytes: z.number(),
  postgresStatements: z.number().optional(),
});
export type Round = z.infer<typeof roundSchema>;

const idleSchema = z.object({
  /** CPU per second, of all processes of a kind together. */
  cpuUsPerSecond: byProcess,
  redisReadsPerSecond: z.number(),
  redisCommandsPerSecond: z.number(),
});
export type Idle = z.infer<typeof idleSchema>;

const measuredSchema = z.object({
  case: z.string(),
  contestant: z.enum(contestantNames),
  /** With a fixed arrival rate: the rate, and its share of the peak. */
  ratePerSecond: z.number().optional(),
  shareOfPeak: z.number().optional(),
  /** The delay of a provider over HTTP, in measurements of latency. */
  providerMs: z.number().optional(),
  rounds: z.array(roundSchema).min(1),
  /** What the processes took before the load, where that was measured. */
  idle: idleSchema.optional(),
});
export type Measured = z.infer<typeof measuredSchema>;

const resultsSchema = z.object({
  format: z.literal(1),
  at: z.iso.datetime(),
  node: z.string(),
  cores: z.int(),
  seconds: z.number(),
  measured: z.array(measuredSchema),
});
export type Results = z.infer<typeof resultsSchema>;

/** The results of a run on this machine. @param seconds the length of a round. */
export const resultsOf = (measured: Measured[], seconds: number): Results => ({
  format: 1,
  at: new Date().toISOString(),
  node: process.version,
  cores: availableParallelism(),
  seconds,
  measured,
});

export function writeResults(file: string, results: Results): void {
  writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
}

/** @throws if the file is missing or contains anything else. */
export function readResults(file: string): Results {
  return resultsSchema.parse(JSON.parse(readFileSync(file, "utf8")));
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

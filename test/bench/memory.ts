import { setTimeout as sleep } from "node:timers/promises";
import { formatTable } from "../harness/format-table.ts";
import { openPostgres } from "./contestants/durable-servers.ts";
import { openSerpmill } from "./contestants/serpmill.ts";
import { measureRound } from "./measure-round.ts";
import { canMeasureProcesses, memoryBytesOf } from "./processes/measure-processes.ts";
import { formatFigure, formatNumber, ratioOf } from "./report.ts";
import type { Run } from "./run.ts";

const load = { request: "search", callers: "hundred", status: 200, connections: 64 } as const;
// A process that has just started still collects the garbage of its start.
const idleMs = 5_000;
const bytesPerMb = 1_000_000;
/** Memory is read after each such share of the searches. After the first share, caches are full. */
const readingShare = 0.1;

export interface MemoryOptions {
  /** How many searches are sent. */
  searches: number;
  /** The length of a round. Memory is reported after each. */
  seconds: number;
  /** Whether the processes have the heap of the docker compose containers. */
  container: boolean;
}

/** Resident memory of an API and a worker after this many searches. */
interface Reading {
  searches: number;
  apiBytes: number;
  workerBytes: number;
}

/**
 * Sends searches over 64 connections, reads the memory of one API and one worker, and writes a table: idle, after each tenth, and
 * the last reading relative to the one after the first tenth. @throws {AnswersFailed}, and where the system tells no memory.
 */
export async function measureMemory(run: Run, options: MemoryOptions): Promise<string> {
  if (!canMeasureProcesses) throw new Error("Memory can only be measured on Linux.");
  const { searches, seconds, container: isContainer } = options;
  const { generator, shutdown } = run;
  const postgres = await openPostgres(shutdown);
  const serpmill = await openSerpmill({ stage: { apis: 1, workers: 1, isContainer }, postgres, generator, shutdown });
  const bytesOf = (kind: "api" | "worker") => memoryBytesOf(serpmill.pids[kind] ?? []);
  const read = (answered: number) => ({ searches: answered, apiBytes: bytesOf("api"), workerBytes: bytesOf("worker") });
  await sleep(idleMs);
  const readings: Reading[] = [read(0)];
  let [answered, nextAt] = [0, searches * readingShare];
  while (answered < searches) {
    answered += (await measureRound(serpmill, { ...load, seconds })).answered;
    const reading = read(answered);
    run.say(`${answered} searches: API ${mb(reading.apiBytes)} MB, worker ${mb(reading.workerBytes)} MB`);
    if (answered < nextAt) continue;
    readings.push(reading);
    nextAt = Math.min(searches, answered + searches * readingShare);
  }
  return memoryReport(readings);
}

/** A table of readings. The first is idle, and the last is compared with the second. */
export function memoryReport(readings: readonly Reading[]): string {
  const [, compared] = readings;
  const last = readings.at(-1);
  const rows = readings.map((one) => [String(one.searches), mb(one.apiBytes), mb(one.workerBytes)]);
  const ratios = (["apiBytes", "workerBytes"] as const).map((key) =>
    formatFigure(ratioOf(compared?.[key], last?.[key])),
  );
  return formatTable(["searches", "API MB", "worker MB"], [...rows, ["last over second", ...ratios]]);
}

const mb = (bytes: number) => formatNumber(bytes / bytesPerMb);

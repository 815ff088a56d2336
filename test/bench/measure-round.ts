import { setTimeout as sleep } from "node:timers/promises";
import type { CaseLoad, Contestant, ProcessKind } from "./contestants/contestant.ts";
import { canMeasureProcesses, cpuUsOf, memoryBytesOf } from "./processes/measure-processes.ts";
import type { Idle, Round } from "./results.ts";

// Work after an answer, such as the confirmation of its delivery, belongs to it.
const settleMs = 200;

/**
 * How long a load on a provider with this delay runs before it is measured. Its callers start during the first half, and the
 * first answers arrive during the second.
 */
export const leadSecondsFor = (providerMs: number): number => (2 * providerMs) / 1_000;

/** Answers of a load failed, so that it measures nothing. */
export class AnswersFailed extends Error {}

/** Runs a load and measures its cost. @throws {AnswersFailed} */
export async function measureRound(contestant: Contestant, load: CaseLoad): Promise<Round> {
  const before = await readAll(contestant);
  const { answered, failed, firstFailure, ...speed } = await contestant.run(load);
  if (failed > 0 || answered === 0)
    throw new AnswersFailed(
      `${failed} of ${answered + failed} answers failed. The first: ${firstFailure ?? "none came"}`,
    );
  await sleep(settleMs);
  const after = await readAll(contestant);
  const per = (from: number, to: number) => (to - from) / answered;
  return {
    answered,
    ...speed,
    cpuUs: eachKind(contestant, (kind) => per(before.cpuUs[kind] ?? 0, after.cpuUs[kind] ?? 0)),
    memoryBytes: eachKind(contestant, (_kind, pids) => memoryBytesOf(pids)),
    redisCommands: per(before.redis.commands, after.redis.commands),
    redisReads: per(before.redis.reads, after.redis.reads),
    redisScriptUs: per(before.redis.scriptUs, after.redis.scriptUs),
    redisDataBytes: after.redis.memoryBytes,
    ...(before.statements !== undefined &&
      after.statements !== undefined && { postgresStatements: per(before.statements, after.statements) }),
  };
}

/** Measures what the processes take without a load. */
export async function measureIdle(contestant: Contestant, seconds: number): Promise<Idle> {
  const before = await readAll(contestant);
  await sleep(seconds * 1_000);
  const after = await readAll(contestant);
  return {
    cpuUsPerSecond: eachKind(contestant, (kind) => ((after.cpuUs[kind] ?? 0) - (before.cpuUs[kind] ?? 0)) / seconds),
    redisReadsPerSecond: (after.redis.reads - before.redis.reads) / seconds,
    redisCommandsPerSecond: (after.redis.commands - before.redis.commands) / seconds,
  };
}

async function readAll(contestant: Contestant) {
  return {
    cpuUs: eachKind(contestant, (_kind, pids) => cpuUsOf(pids)),
    redis: await contestant.readRedis(),
    statements: await contestant.readStatements?.(),
  };
}

function eachKind(
  { pids }: Contestant,
  read: (kind: ProcessKind, pids: readonly number[]) => number,
): Partial<Record<ProcessKind, number>> {
  if (!canMeasureProcesses) return {};
  // Object.entries does not keep the type of the keys.
  const kinds = Object.entries(pids) as [ProcessKind, readonly number[]][];
  return Object.fromEntries(kinds.map(([kind, ids]) => [kind, read(kind, ids)]));
}

import type { Load, LoadResult } from "../load/load.ts";
import type { RedisCounters } from "./durable-servers.ts";

export type ContestantName = "serpmill" | "bullmq" | "yardstick" | "traced";

export type ProcessKind = "api" | "worker" | "redis" | "postgres" | "provider" | "generator";

/** Whose tokens a load uses. `spending-limits` are a hundred organizations too, far from their limits. */
export type Callers = "hundred" | "one" | "spending-limits" | "without-credit" | "limited" | "unknown";

/** How many organizations the callers `hundred` belong to. */
export const organizationsMax = 100;

export type CaseLoad = Omit<Load, "urls" | "tokens"> & { callers: Callers };

/** The service, or something that it is compared with. */
export interface Contestant {
  name: ContestantName;
  /** The ids of its processes and of the load generator. */
  pids: Partial<Record<ProcessKind, readonly number[]>>;
  readRedis: () => Promise<RedisCounters>;
  /** Statements since the start of its Postgres; absent if it has none. */
  readStatements?: () => Promise<number>;
  run: (load: CaseLoad) => Promise<LoadResult>;
}

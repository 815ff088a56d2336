import type { Redis } from "ioredis";
import type { Database } from "../shared/database/pool.ts";
import { verifyDecisions, verifyKeys } from "./verification/decisions.ts";
import { type EntryCounts, verifyEntries } from "./verification/entries.ts";
import { verifyRedis } from "./verification/redis.ts";
import { FoundViolations, type Violation } from "./verification/violations.ts";

/** What `ledger verify` found. */
export interface VerificationReport extends EntryCounts {
  ok: boolean;
  /** False if Redis was unreachable and only Postgres was checked. */
  redisChecked: boolean;
  violations: Violation[];
}

/**
 * Checks the invariants of the money while the service runs, and lists at most twenty violations of each. The usual check costs
 * what is new: entries after the checkpoint of their organization, and refunds of the last two days.
 * @param options.isFull whether to check everything that there is: only then an old entry that was altered is found, or a key that
 * has paid without a charge.
 */
export async function verifyLedger(
  database: Database,
  redis: Redis | undefined,
  { isFull = false }: { isFull?: boolean } = {},
): Promise<VerificationReport> {
  const found = new FoundViolations();
  await verifyDecisions(database, { isFull, found });
  if (isFull) await verifyKeys(database, found);
  const counts = await verifyEntries(database, { isFull, found });
  if (redis) found.add(...(await verifyRedis(database, redis)));
  return { ok: found.list.length === 0, ...counts, redisChecked: redis !== undefined, violations: found.list };
}

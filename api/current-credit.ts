import type { Redis } from "ioredis";
import { type Credit, readCredit } from "../shared/credits/ledger.ts";
import { suspectCopy } from "../shared/credits/ledger-gaps.ts";
import type { Database } from "../shared/database/pool.ts";
import { orPostgresUnavailable, orRedisUnavailable } from "./datastore-unavailable.ts";
import { unavailable } from "./errors.ts";

/**
 * Reads from Postgres what it has of an organization's credit, after Redis was seen with a version of it. An older one would not
 * replace the copy: Postgres lost entries. The reconciler records the gap and deletes the copy in about a second.
 * @returns undefined if the organization does not exist.
 * @throws {CallerError} `unavailable`
 */
export async function readCurrentCredit(
  { redis, database }: { redis: Redis; database: Database },
  organizationId: string,
  seenVersion: number,
  of: { tokenId: string; requestIds?: string[] },
): Promise<Credit | undefined> {
  const credit = await orPostgresUnavailable(readCredit(database, organizationId, of));
  if (!credit || credit.balance.version >= seenVersion) return credit;
  await orRedisUnavailable(suspectCopy(redis, organizationId, seenVersion, credit.balance));
  throw unavailable("balance_unreadable");
}

import type { Redis } from "ioredis";
import { indexEntryOf, readIndexEntry } from "../../shared/credits/hold-deadlines.ts";
import { holdIndexKey, keysOf } from "../../shared/credits/redis-keys.ts";
import type { Violation } from "./violation.ts";

/**
 * Compares the open holds with their index while the service runs. A hold and its entry come and go in one step, so what
 * still has no counterpart at a second look had none at the first one.
 */

const rule = "the index names the open holds, each with its deadline";

export interface OpenHold {
  organizationId: string;
  requestId: string;
  mils: number;
  /** By Redis' clock. */
  deadlineMs: number;
  keyHash: string;
}

/** The open holds that have no entry in the index, or one with another deadline. */
export async function unindexedHolds(redis: Redis, open: readonly OpenHold[]): Promise<Violation[]> {
  const deadlines = await Promise.all(open.map((hold) => redis.zscore(holdIndexKey, indexEntryOf(hold))));
  const missing = open.filter(({ deadlineMs }, at) => Number(deadlines[at]) !== deadlineMs);
  const isOpen = await Promise.all(missing.map((hold) => hasHold(redis, hold)));
  return missing
    .filter((_, at) => isOpen[at])
    .map(({ requestId }) => ({ rule, subject: requestId, found: "open, and not in the index with its deadline" }));
}

/** The entries of the index that have no hold. */
export async function strayEntries(redis: Redis): Promise<Violation[]> {
  const entries = await redis.zrange(holdIndexKey, 0, "-1");
  const isOpen = await Promise.all(entries.map((entry) => hasHold(redis, readIndexEntry(entry))));
  const stray = entries.filter((_, at) => !isOpen[at]);
  const deadlines = await Promise.all(stray.map((entry) => redis.zscore(holdIndexKey, entry)));
  return stray
    .filter((_, at) => deadlines[at] !== null)
    .map((entry) => ({ rule, subject: readIndexEntry(entry).requestId, found: "in the index, and not open" }));
}

async function hasHold(redis: Redis, { organizationId, requestId }: Pick<OpenHold, "organizationId" | "requestId">) {
  return (await redis.hexists(keysOf(organizationId).holds, requestId)) === 1;
}

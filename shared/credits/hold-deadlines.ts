import type { Redis } from "ioredis";
import { execPipeline } from "../redis/pipeline.ts";
import { holdIndexKey, keysOf, openOrganizationsKey } from "./redis-keys.ts";

/**
 * The index of all organizations' open holds: a sorted set of `organization|request id|hash of the Idempotency-Key`, by
 * deadline. admit.lua and settle.lua keep it together with the holds, so what the sweeper and the gauges cost depends on
 * the open holds and not on the number of organizations.
 */

/** An open hold, as the index names it. */
export interface IndexedHold {
  organizationId: string;
  requestId: string;
  keyHash: string | undefined;
}

export const indexEntryOf = (hold: { organizationId: string; requestId: string; keyHash: string }) =>
  `${hold.organizationId}|${hold.requestId}|${hold.keyHash}`;

export function readIndexEntry(entry: string): IndexedHold {
  const [organizationId = "", requestId = "", keyHash] = entry.split("|");
  return { organizationId, requestId, keyHash: keyHash || undefined };
}

/** Reads at most `limit` holds, oldest deadline first, that are open for `graceMs` after it. Leaves the first `skip` out. */
export async function findOverdueHolds(
  redis: Redis,
  { graceMs, skip = 0, limit }: { graceMs: number; skip?: number; limit: number },
): Promise<IndexedHold[]> {
  const [seconds, microseconds] = await redis.time();
  const latestMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - graceMs;
  const entries = await redis.zrange(holdIndexKey, "-inf", `(${latestMs}`, "BYSCORE", "LIMIT", skip, limit);
  return entries.map(readIndexEntry);
}

const entriesPerPage = 1_000;

/** The number of open holds, and the mils that their organizations hold. Holds that come and go meanwhile may be missed. */
export async function readOpenHolds(redis: Redis): Promise<{ open: number; heldMils: number }> {
  const organizationIds = new Set<string>();
  let open = 0;
  let heldMils = 0;
  for (;;) {
    const page = await redis.zrange(holdIndexKey, open, `${open + entriesPerPage - 1}`);
    const pipeline = redis.pipeline();
    for (const { organizationId } of page.map(readIndexEntry)) {
      if (organizationIds.has(organizationId)) continue;
      organizationIds.add(organizationId);
      pipeline.hget(keysOf(organizationId).holds, "held");
    }
    for (const held of await execPipeline(pipeline)) heldMils += Number(held ?? 0);
    open += page.length;
    if (page.length < entriesPerPage) return { open, heldMils };
  }
}

/** The number of organizations with open holds. @throws if Redis does not answer. */
export function countOpenOrganizations(redis: Redis): Promise<number> {
  return redis.scard(openOrganizationsKey);
}

import type { Redis } from "ioredis";
import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf, valuesOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";
import { newId } from "../ids.ts";
import { Script } from "../redis/script.ts";
import type { VersionedBalance } from "./ledger.ts";
import { keysOf, suspectCopiesKey } from "./redis-keys.ts";

/**
 * Gaps: entries of the ledger that Postgres lost, because a replica that lagged behind took over or an old backup was restored. A
 * copy of a balance in Redis is all that is left of them, until entries of the new history pass its version.
 *
 * 1. The first charge or reversal of the new history finds that the copy is newer than what it added to (settle.lua), or the
 *    reconciler or a check before a refusal finds it newer than Postgres. Each notes the copy as suspect, in Redis.
 * 2. The next run of the reconciler asks Postgres. If the ledger has the entry after which the copy came, messages only crossed.
 *    Otherwise Postgres records the gap. Only then is the copy deleted.
 *
 * A crash in between repeats the second step under the same id. The list of suspects is lost only with Redis' memory.
 */

const suspectsPerRun = 1_000;

const here = (file: string) => new URL(file, import.meta.url);
const suspectScript = new Script("suspectCopy", here("note-suspect.lua"), here("suspect-copy.lua"));
const endScript = new Script("endSuspicion", here("end-suspicion.lua"));

/** Notes the copy with this version as suspect. @param truth what Postgres has instead. @returns whether Redis still has it. */
export async function suspectCopy(
  redis: Redis,
  organizationId: string,
  version: number,
  truth: VersionedBalance,
): Promise<boolean> {
  const { balance } = keysOf(organizationId);
  const args = [organizationId, version, newId("gap"), truth.version, truth.balanceMils];
  return (await suspectScript.run(redis, [balance, suspectCopiesKey], args)) === 1;
}

const gapRow = rowOf({
  gapId: z.string(),
  organizationId: z.string(),
  /** What Redis had. */
  redisVersion: z.number(),
  redisBalanceMils: z.number(),
  /** What Postgres had instead. */
  version: z.number(),
  balanceMils: z.number(),
  /** By how much Postgres' balance is too high: charges that were lost. Below 0, lost credit outweighs them. */
  mils: z.number(),
  seenAt: z.date(),
});
/** Entries that Postgres lost of one organization. */
type LedgerGap = z.infer<typeof gapRow>;

interface Suspect extends Omit<LedgerGap, "mils" | "seenAt"> {
  entryId: string;
  field: string;
  value: string;
}

function readSuspect(field: string, value: string): Suspect {
  const [organizationId = "", redisVersion] = field.split("|");
  const [gapId = "", redisBalance, entryId = "", version, balance] = value.split("|");
  const numbers = { redisVersion: Number(redisVersion), redisBalanceMils: Number(redisBalance) };
  const truth = { version: Number(version), balanceMils: Number(balance) };
  return { field, value, gapId, organizationId, entryId, ...numbers, ...truth };
}

/**
 * Has Postgres judge the copies that are suspect, and ends the suspicions. The copies of gaps are deleted.
 * @returns the copies that came after entries which Postgres lost, and whether each was still there to be deleted.
 * @throws if Postgres does not record the gaps. Then all copies and suspicions stay.
 */
export async function judgeSuspectCopies(
  database: Database,
  redis: Redis,
): Promise<(Pick<LedgerGap, "gapId" | "organizationId" | "mils"> & { deleted: boolean })[]> {
  const [, listed] = await redis.hscan(suspectCopiesKey, 0, "COUNT", suspectsPerRun);
  const suspects = listed.flatMap((field, at) => (at % 2 === 0 ? [readSuspect(field, listed[at + 1] ?? "")] : []));
  if (suspects.length === 0) return [];
  const { rows } = await database.query("select record_ledger_gaps($1, $2, $3, $4, $5, $6, $7) as id", [
    suspects.map(({ gapId }) => gapId),
    suspects.map(({ organizationId }) => organizationId),
    suspects.map(({ redisVersion }) => redisVersion),
    suspects.map(({ redisBalanceMils }) => redisBalanceMils),
    suspects.map(({ entryId }) => entryId),
    suspects.map(({ version }) => version),
    suspects.map(({ balanceMils }) => balanceMils),
  ]);
  const gaps = new Set(valuesOf(z.string(), rows));
  const ended = await Promise.all(
    suspects.map(async ({ gapId, organizationId, ...suspect }) => {
      const { balance, tokens } = keysOf(organizationId);
      const { field, value, redisVersion, redisBalanceMils, balanceMils } = suspect;
      const args = [field, value, gaps.has(gapId) ? "1" : "", redisVersion, redisBalanceMils];
      const deleted = (await endScript.run(redis, [balance, tokens, suspectCopiesKey], args)) === 1;
      return { gapId, organizationId, mils: balanceMils - redisBalanceMils, deleted };
    }),
  );
  return ended.filter(({ gapId }) => gaps.has(gapId));
}

/** Lists gaps that no operator has closed, at most so many, those of an organization together. */
export async function listOpenGaps(database: Querying, limit: number): Promise<LedgerGap[]> {
  const { rows } = await database.query(
    `select id as gap_id, organization_id, redis_version, redis_balance_mils, version, balance_mils, seen_at,
       balance_mils - redis_balance_mils as mils
     from ledger_gaps where closed_at is null order by organization_id, id limit $1`,
    [limit],
  );
  return rows.map((row) => gapRow.parse(row));
}

const totalsRow = rowOf({ gaps: z.number(), organizations: z.number(), mils: z.number() });

/** Counts the gaps that no operator has closed, their organizations and mils. */
export async function countOpenGaps(database: Querying): Promise<z.infer<typeof totalsRow>> {
  const { rows } = await database.query(
    `select count(*) as gaps, count(distinct organization_id) as organizations,
       coalesce(sum(balance_mils - redis_balance_mils), 0)::bigint as mils
     from ledger_gaps where closed_at is null`,
  );
  return totalsRow.parse(rows[0]);
}

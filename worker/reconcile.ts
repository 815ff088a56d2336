import { z } from "zod";
import { keysOf, storeBalance } from "../shared/credits/holds.ts";
import { listUndelivered, reverseCharges } from "../shared/credits/ledger.ts";
import type { VersionedBalance } from "../shared/credits/versioned-balance.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import type { WorkerContext } from "./context.ts";

/**
 * Makes good what was lost on its way, all the time: charges whose answer nobody confirmed, balance copies that Redis
 * lost or restored from the past. Repairs only in the direction of Postgres, and counts what it did.
 */

const reversalsPerRound = 500;
const organizationsPerPage = 1_000;
const keysPerRound = 5_000;

/** Gives back charges whose delivery nobody confirmed for five minutes. In doubt, the caller keeps the mils. */
export async function reverseUndelivered(context: WorkerContext): Promise<void> {
  const { database, metrics, redis, log } = context;
  const charges = await listUndelivered(database, protocolTimes.undeliveredReversalAfterMs, reversalsPerRound);
  if (charges.length === 0) return;
  for (const reversal of await reverseCharges(database, charges, "undelivered")) {
    metrics.reversals.inc({ reason: "undelivered" }, reversal.requestIds.length);
    metrics.reversedMils.inc({ reason: "undelivered" }, reversal.mils);
    log.warn(
      { organizationId: reversal.organizationId, requestIds: reversal.requestIds },
      "gave back, delivery in doubt",
    );
    await storeBalance(redis, reversal.organizationId, reversal.balance);
  }
}

/** Forgets keys whose 24 hours are over. */
export async function forgetExpiredKeys({ database }: WorkerContext): Promise<void> {
  await database.query(
    `delete from paid_keys where (organization_id, key_hash) in (
       select organization_id, key_hash from paid_keys where expires_at < now() order by expires_at limit $1)`,
    [keysPerRound],
  );
}

/** Stores the balance of every organization in Redis, where it is newer: Redis was restarted, perhaps from the past. */
export async function storeAllBalances(context: WorkerContext): Promise<void> {
  for (let after = ""; ; ) {
    const page = await readPage(context, after);
    const pipeline = context.redis.pipeline();
    for (const { id, balance } of page) void storeBalance(pipeline, id, balance);
    if (page.length > 0) await pipeline.exec();
    context.metrics.balancesStored.inc({ why: "redis_restarted" }, page.length);
    const last = page.at(-1);
    if (!last || page.length < organizationsPerPage) return;
    after = last.id;
  }
}

/** Where the slow rotation over all organizations stands. */
export interface Rotation {
  after: string;
  driftMils: number;
}

/**
 * Compares one page of organizations: ledger against balance, balance against Redis' copy. A copy that is older is made
 * anew; one that cannot be right (newer than Postgres, or of the same version with another balance) is thrown away, to be
 * seeded again. The drift found in one whole rotation becomes the metric.
 */
export async function reconcileNextPage(context: WorkerContext, rotation: Rotation): Promise<Rotation> {
  const ids = await listIds(context, rotation.after);
  // Redis first: a copy that was read before Postgres can only be older, unless something is wrong.
  const copies = await readCopies(context, ids);
  const page = await readPage(context, rotation.after);
  let driftMils = rotation.driftMils;
  for (const { id, balance, ledgerMils } of page) {
    driftMils += Math.abs(balance.balanceMils - ledgerMils);
    driftMils += await compare(context, id, balance, copies.get(id));
  }
  const last = page.at(-1);
  if (last && page.length === organizationsPerPage) return { after: last.id, driftMils };
  context.metrics.ledgerDriftMils.set(driftMils);
  return { after: "", driftMils: 0 };
}

async function compare(
  context: WorkerContext,
  id: string,
  balance: VersionedBalance,
  copy: VersionedBalance | undefined,
): Promise<number> {
  const { redis, metrics, log } = context;
  if (!copy) return 0; // Cold: seeded by its next search.
  if (copy.version < balance.version) {
    await storeBalance(redis, id, balance);
    // Most of these are settlements on their way, a moment younger than the reading.
    metrics.balancesStored.inc({ why: "older" });
    return 0;
  }
  if (copy.version === balance.version && copy.balanceMils === balance.balanceMils) return 0;
  await redis.del(keysOf(id).balance);
  metrics.balancesStored.inc({ why: "impossible" });
  log.error({ organizationId: id, copy, balance }, "Redis' copy of a balance was impossible and is seeded anew");
  return Math.abs(copy.balanceMils - balance.balanceMils);
}

const idRow = z.object({ id: z.string() });

/** The next page of all organizations, in the order of their ids. */
export async function listIds({ database }: WorkerContext, after: string): Promise<string[]> {
  const { rows } = await database.query("select id from organizations where id > $1 order by id limit $2", [
    after,
    organizationsPerPage,
  ]);
  return rows.map((row) => idRow.parse(row).id);
}

const copyReply = z.tuple([z.coerce.number(), z.coerce.number()]);

async function readCopies({ redis }: WorkerContext, ids: readonly string[]): Promise<Map<string, VersionedBalance>> {
  if (ids.length === 0) return new Map();
  const pipeline = redis.pipeline();
  for (const id of ids) pipeline.hmget(keysOf(id).balance, "balance", "version");
  const replies = (await pipeline.exec()) ?? [];
  return new Map(
    replies.flatMap(([error, reply], place): [string, VersionedBalance][] => {
      if (error) throw error;
      if (!Array.isArray(reply) || reply[0] === null) return [];
      const [balanceMils, version] = copyReply.parse(reply);
      return [[ids[place] ?? "", { balanceMils, version }]];
    }),
  );
}

const pageRow = z.object({ id: z.string(), balance_mils: z.number(), version: z.number(), ledger_mils: z.number() });

async function readPage({ database }: WorkerContext, after: string) {
  const { rows } = await database.query(
    `select o.id, o.balance_mils, o.version, coalesce(l.balance_after_mils, 0) as ledger_mils
     from organizations o left join ledger_entries l on l.organization_id = o.id and l.version = o.version
     where o.id > $1 order by o.id limit $2`,
    [after, organizationsPerPage],
  );
  return rows
    .map((row) => pageRow.parse(row))
    .map((row) => ({
      id: row.id,
      balance: { balanceMils: row.balance_mils, version: row.version },
      ledgerMils: row.ledger_mils,
    }));
}

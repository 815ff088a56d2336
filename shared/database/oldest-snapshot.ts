import { z } from "zod";
import type { Database } from "./pool.ts";
import { rowOf } from "./row.ts";

const snapshotRow = rowOf({ pid: z.int(), applicationName: z.string().nullable(), transactions: z.int() });

/**
 * The transaction that keeps Postgres from removing dead rows for longest, and how many newer ones there are. An organization's row
 * has a version for each of its batches since then, and a settlement reads past all of them. A vacuum keeps Postgres from nothing.
 * A writing transaction of another database does: each snapshot in this one is as old as it. Of both, it is the one that counts.
 */
export async function readOldestSnapshot(database: Database): Promise<z.infer<typeof snapshotRow> | undefined> {
  // Of other users, pg_stat_activity shows a snapshot to everyone, but its time only to pg_monitor.
  const { rows } = await database.query(
    `select pid, application_name, transactions
     from pg_stat_activity cross join lateral (select greatest(age(backend_xid),
       case when datid is null or datname = current_database() then age(backend_xmin) end) as transactions) oldest
     where transactions is not null and pid not in (select pid from pg_stat_progress_vacuum)
     order by transactions desc, backend_xid is null limit 1`,
  );
  return rows[0] && snapshotRow.parse(rows[0]);
}

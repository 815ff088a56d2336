import { asOwner } from "../../harness/servers/as-owner.ts";
import type { AttackStack } from "../attack-stack.ts";

/**
 * How many transactions the database has committed. Postgres counts those of an open connection late, so the connections of the
 * API are ended first. It opens others.
 */
export async function commitsOf({ service }: AttackStack): Promise<number> {
  return asOwner(service.databaseUrl, async (owner) => {
    const opened = await owner.query(
      `select pid from pg_stat_activity where application_name like 'serpmill%api%' and datname = current_database()`,
    );
    const pids = opened.rows.map(({ pid }) => Number(pid));
    await service.until(async () => {
      // One that works is left to end its transaction.
      const { rows } = await owner.query(
        `select count(case when state = 'idle' then pg_terminate_backend(pid) end) as ended
         from pg_stat_activity where pid = any ($1) having count(*) > 0`,
        [pids],
      );
      return rows.length === 0;
    });
    const { rows } = await owner.query(
      "select xact_commit as commits from pg_stat_database where datname = current_database()",
    );
    return Number(rows[0].commits);
  });
}

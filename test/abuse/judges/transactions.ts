import type { AttackStack } from "../attack-stack.ts";

/**
 * How many transactions the database has committed. Postgres counts those of an open connection late, so the API is replaced
 * first.
 */
export async function commitsOf({ service }: AttackStack): Promise<number> {
  await Promise.all(service.apis.splice(0).map((api) => api.destroy()));
  const sessions = `select count(*) as open from pg_stat_activity
    where application_name like 'serpmill%api%' and datname = current_database()`;
  await service.until(async () => (await service.database.query(sessions)).rows[0].open === 0);
  const { rows } = await service.database.query(
    "select xact_commit as commits from pg_stat_database where datname = current_database()",
  );
  await service.startApi();
  return Number(rows[0].commits);
}

import pg from "pg";
import { Redis } from "ioredis";
import { addRedisUsers } from "../../harness/servers/redis-users.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

/** Each would create credit, read other organizations' tokens, or stop the service. $1 is the organization. */
const statements = [
  "reset role",
  "set role postgres",
  "set session authorization postgres",
  "update organizations set balance_mils = 1000000 where id = $1",
  "delete from ledger_entries where organization_id = $1",
  "update ledger_entries set amount_mils = 1000000 where organization_id = $1",
  "insert into ledger_entries (organization_id, kind, amount_mils) values ($1, 'grant', 1000000)",
  "truncate undelivered",
  "drop table organizations",
  "alter table organizations disable trigger all",
  "create function public.now() returns timestamptz language sql as 'select null::timestamptz'",
  "copy organizations to program 'true'",
];
const commands = [
  ["FLUSHALL"],
  ["FLUSHDB"],
  ["CONFIG", "SET", "maxmemory", "1"],
  ["CONFIG", "GET", "*"],
  ["KEYS", "*"],
  ["SHUTDOWN", "NOSAVE"],
  ["ACL", "LIST"],
  ["DEBUG", "SLEEP", "1"],
  ["MONITOR"],
  ["REPLICAOF", "127.0.0.1", "1"],
  ["MODULE", "LIST"],
  ["SAVE"],
  ["CLIENT", "KILL", "TYPE", "normal"],
] as const;

/** An attacker has the logins of a process. */
export const stolenLogins: Attack = {
  name: "stolen-logins",
  tried: `${statements.length} statements with the processes' Postgres login, ${commands.length} commands with each Redis login`,
  run: async (stack) => {
    const { organizationId } = await stack.service.organization({ creditMils: 100 });
    return [await judgePostgres(stack, organizationId), await judgeRedis(stack)];
  },
};

async function judgePostgres({ service }: AttackStack, organizationId: string): Promise<Finding> {
  const before = await service.ledgerOf(organizationId);
  const user = () => "select current_user, session_user, (select rolsuper from pg_roles where rolname = current_user)";
  const done: string[] = [];
  for (const statement of statements) {
    const client = new pg.Client({ connectionString: service.processDatabaseUrl });
    await client.connect();
    const outcome = await client
      .query(statement, statement.includes("$1") ? [organizationId] : [])
      .then(async () => (await client.query(user())).rows[0])
      .catch(() => undefined);
    await client.end();
    // A login may reset its role to itself, which gains nothing.
    const isHarmless =
      statement === "reset role" && outcome?.rolsuper === false && !/owner|postgres/.test(outcome.current_user);
    if (outcome && !isHarmless) done.push(statement);
  }
  const isSame = JSON.stringify(before) === JSON.stringify(await service.ledgerOf(organizationId));
  return {
    promised: "the processes' Postgres login can only execute the service's functions",
    seen: done.length === 0 ? `${statements.length} refused` : `carried out: ${done.join("; ")}`,
    held: done.length === 0 && isSame,
  };
}

async function judgeRedis({ service }: AttackStack): Promise<Finding> {
  const { api, worker } = await addRedisUsers(service.redisServer);
  const done: string[] = [];
  for (const url of [api, worker]) {
    const redis = new Redis(url, { retryStrategy: () => null, enableReadyCheck: false });
    redis.on("error", () => undefined);
    for (const [command, ...args] of commands) {
      const isDone = await redis.call(command, ...args).then(
        () => true,
        () => false,
      );
      if (isDone) done.push(`${command} as ${new URL(url).username}`);
    }
    redis.disconnect();
  }
  return {
    promised: "the Redis users can only run the service's commands",
    seen: done.length === 0 ? `${2 * commands.length} refused` : `carried out: ${done.join(", ")}`,
    held: done.length === 0,
  };
}

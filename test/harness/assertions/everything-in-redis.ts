import type { Redis } from "ioredis";
import { asOwner } from "../servers/as-owner.ts";

/** The whole content of a Redis: all keys with their values. */
export async function everythingInRedis(redis: Redis): Promise<string> {
  const keys = await redis.keys("*");
  return JSON.stringify(await Promise.all(keys.map(async (key) => [key, await valueOf(redis, key)])));
}

async function valueOf(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case "string":
      return redis.get(key);
    case "hash":
      return redis.hgetall(key);
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return redis.smembers(key);
    case "zset":
      return redis.zrange(key, "0", "-1");
    case "stream":
      return redis.xrange(key, "-", "+");
    case "none":
      return undefined; // The key has expired or was deleted since `keys`.
    default:
      throw new Error(`${key} is of the unknown type ${type}`);
  }
}

/** Every row of every table in the schema `public`. */
export function everythingInPostgres(databaseUrl: string): Promise<string> {
  return asOwner(databaseUrl, async (client) => {
    const tables = await client.query<{ name: string }>(
      "select format('%I', tablename) as name from pg_tables where schemaname = 'public'",
    );
    const rows = [];
    for (const { name } of tables.rows) rows.push((await client.query(`select t::text as row from ${name} t`)).rows);
    return JSON.stringify(rows);
  });
}

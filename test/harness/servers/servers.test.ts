import { Client } from "pg";
import { expect, test } from "vitest";
import { freshDatabase, freshRedis } from "./servers.ts";

test("each test has its own migrated database, even if many are created at once", async () => {
  const databases = await Promise.all([freshDatabase(), freshDatabase(), freshDatabase()]);
  expect(new Set(databases.map(({ url }) => url)).size).toBe(3);
  for (const { url, drop } of databases) {
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query("select count(*)::int as migrations from migrations");
    expect(rows[0].migrations).toBeGreaterThan(0);
    await client.end();
    await drop();
  }
});

test("each test has its own Redis", async () => {
  const [one, other] = await Promise.all([freshRedis(), freshRedis()]);
  expect(one.url).not.toBe(other.url);
  await Promise.all([one.stop(), other.stop()]);
});

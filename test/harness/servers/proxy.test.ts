import { afterAll, beforeAll, expect, test } from "vitest";
import pg from "pg";
import type { FreshDatabase } from "./fresh-database.ts";
import { type Proxy, startProxy } from "./proxy.ts";
import { freshDatabase } from "./servers.ts";

/** The proxy with which tests cause network faults. */

let database: FreshDatabase;
let way: Proxy;
beforeAll(async () => {
  database = await freshDatabase();
  way = await startProxy(database.url);
  await onServer("create table landed (n int)");
});
afterAll(async () => {
  await way.close();
  await database.drop();
});

async function ask(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined); // The query fails with it.
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

const onServer = (text: string) => ask(database.url, text);
const onWay = (text: string) => ask(way.url, text);
const rowsOf = async (n: number) => (await onServer(`select from landed where n = ${n}`)).rowCount;

test.each([
  { landed: true, rows: 1 },
  { landed: false, rows: 0 },
])(
  "a connection cut around a statement fails, and the statement was carried out: $landed",
  async ({ landed, rows }) => {
    const n = landed ? 1 : 2;
    way.cutAround(["insert"], landed);
    await expect(onWay(`insert into landed values (${n})`)).rejects.toThrow();
    expect(await rowsOf(n)).toBe(rows);
    expect((await onWay("select")).rowCount).toBe(1);
  },
);

test("with the replies held a statement is carried out at once, and its reply comes once that is over", async () => {
  const client = new pg.Client({ connectionString: way.url });
  await client.connect();
  way.silence("replies");
  let isAnswered = false;
  const asked = client.query("insert into landed values (3)").then(() => {
    isAnswered = true;
  });
  await expect.poll(() => rowsOf(3)).toBe(1);
  expect(isAnswered).toBe(false);
  way.mend();
  await asked;
  await client.end();
});

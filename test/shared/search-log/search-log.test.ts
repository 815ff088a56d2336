import { afterAll, expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openDatabase } from "../../../shared/database/pool.ts";
import { newId, timeOfId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { eraseRows } from "../../../commands/erasure/erase-organization.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";
import { insertSearches, LogWriter, rotateDays, type SearchRecord } from "../../../shared/search-log/search-log.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

/** The search log: what is written, by whom and how often, how long it stays in Postgres, and which rows wait in a process. */

// In another time zone than the one that the days are cut in.
const opened = await openFreshDatabase(afterAll, { timeZone: "Pacific/Auckland" });
const organizationId = await createPayer(opened.database);
const { tokenId = "" } = (await issueToken(opened.database, organizationId, { name: "ci" })) ?? {};

const calls = [{ provider: "serper", outcome: "ok", ms: 12, costMicroUsd: 1_000 }];
const trace = { from: "provider" as const, provider: "serper", calls };

function record(fields: Partial<SearchRecord> = {}): SearchRecord {
  const known = { requestId: newId("req"), organizationId, tokenId, keyHash: undefined, query: query() };
  return { ...known, durationMs: 12.4, trace, ...fields };
}

async function logged({ requestId }: SearchRecord) {
  return (await readSearches(opened.database, organizationId, [requestId])).get(requestId);
}

const countRows = async (): Promise<number> =>
  (await opened.database.query("select count(*) as count from search_log")).rows[0].count;

/** The partitions that have a day, oldest first. */
async function days(database = opened.database): Promise<string[]> {
  const { rows } = await database.query(
    "select relname from pg_class where relispartition and relkind = 'r' and relname ~ '^search_log_[0-9]{8}$' order by relname",
  );
  return rows.map(({ relname }) => relname);
}

const dayMs = 86_400_000;
const nameOf = (at: number) => `search_log_${new Date(at).toISOString().slice(0, 10).replaceAll("-", "")}`;

/** Maintenance until it got its locks, which autovacuum may have for a moment. @returns how many days it removed. */
async function keep(keptDays: number, database = opened.database): Promise<number> {
  let removed = 0;
  await eventually(async () => {
    removed += await rotateDays(database, keptDays);
    const names = await days(database);
    if (keptDays === 0) return names.length === 0;
    return names.length >= 8 && (names[0] ?? "") >= nameOf(Date.now() - keptDays * dayMs);
  });
  return removed;
}

test("a search is logged with its query, its token, its duration and its calls, whatever characters they have", async () => {
  const keyword = `"; drop table x; -- {a,b} \\ ' 🦘 <script>\t`.trim();
  const asked = query({ keyword, location: "Berlin, DE", device: "mobile", depth: 30, targetDomain: "a.example" });
  const own = record({ query: { ...asked, types: ["organic", "people_also_ask"] }, keyHash: "k".repeat(64) });
  const bare = record({ trace: undefined });
  await insertSearches(opened.database, [own, bare]);
  const { engine: _engine, ...searched } = asked;
  expect(await logged(own)).toEqual({
    at: timeOfId(own.requestId),
    requestId: own.requestId,
    token: { tokenId, name: "ci", last4: expect.stringMatching(/^.{4}$/) },
    keyHash: "k".repeat(64),
    query: { ...searched, types: ["organic", "people_also_ask"] },
    durationMs: 12,
    work: { source: "provider", provider: "serper", calls },
  });
  expect(await logged(bare)).toMatchObject({ keyHash: null, work: null });
});

test("a search that ran twice, or that API and worker both ended, has one row, with what the worker did", async () => {
  const twice = record();
  const ofApi = record({ trace: undefined, durationMs: 500 });
  const ofWorker = { ...ofApi, trace, durationMs: 700 };
  await insertSearches(opened.database, [ofApi, twice, twice]);
  expect(await logged(ofApi)).toMatchObject({ durationMs: 500, work: null });
  const rows = await countRows();
  await insertSearches(opened.database, [ofWorker, { ...twice, durationMs: 99, trace: { ...trace, provider: "x" } }]);
  await insertSearches(opened.database, [ofApi]);
  expect(await logged(ofApi)).toMatchObject({ durationMs: 500, work: { provider: "serper" } });
  expect(await logged(twice)).toMatchObject({ durationMs: 12, work: { provider: "serper" } });
  const both = record();
  await insertSearches(opened.database, [{ ...both, trace: undefined }, both]);
  expect(await logged(both)).toMatchObject({ work: { provider: "serper" } });
  expect(await countRows()).toBe(rows + 1);
});

test("two processes that write the same searches in another order at once both succeed", async () => {
  const batch = Array.from({ length: 200 }, () => record({ trace: undefined }));
  const rows = await countRows();
  const batches = [batch, batch.toReversed(), batch.map((one) => ({ ...one, trace })), batch.toReversed()];
  const written = await Promise.allSettled(batches.map((one) => insertSearches(opened.database, one)));
  expect(written.map(({ status }) => status)).toEqual(Array(4).fill("fulfilled"));
  expect(await countRows()).toBe(rows + 200);
});

test("rows before and after midnight (UTC) go to their days, and a day without a partition fails no batch", async () => {
  await keep(30);
  const ahead = await days();
  expect(ahead).toHaveLength(8);
  const begins = new Date().setUTCHours(24, 0, 0, 0);
  const [late, early, far] = [begins - 1, begins, begins + 30 * 86_400_000].map((ms) =>
    record({ requestId: requestIdAt(ms) }),
  );
  if (!late || !early || !far) throw new Error("three rows");
  await insertSearches(opened.database, [late, early, far]);
  const tables = await opened.database.query(
    "select tableoid::regclass::text as name from search_log where request_id = any ($1) order by at",
    [[late, early, far].map(({ requestId }) => requestId)],
  );
  expect(tables.rows.map(({ name }) => name)).toEqual([ahead[0], ahead[1], "search_log_rest"]);
});

test("rows that were written before their day was made move into it and stay readable", async () => {
  const other = await openFreshDatabase(onTestFinished);
  const own = record({ organizationId: await createPayer(other.database) });
  await insertSearches(other.database, [own]);
  const where = "select tableoid::regclass::text as name from search_log";
  expect((await other.database.query(where)).rows).toEqual([{ name: "search_log_rest" }]);
  expect(await keep(1, other.database)).toBe(0);
  expect((await other.database.query(where)).rows[0].name).toMatch(/^search_log_\d{8}$/);
  expect((await readSearches(other.database, own.organizationId, [own.requestId])).size).toBe(1);
});

test("days beyond SEARCH_LOG_DAYS are removed, also rows without a day, and with 0 all of them", async () => {
  const today = new Date().setUTCHours(0, 0, 0, 0);
  const [old, kept] = [today - 8 * dayMs, today - 7 * dayMs];
  for (const at of [old, kept]) {
    const range = `from ('${new Date(at).toISOString()}') to ('${new Date(at + dayMs).toISOString()}')`;
    await asOwner(opened.url, `create table ${nameOf(at)} partition of search_log for values ${range}`);
  }
  const [gone, stays, rest] = [old + 1, kept, today - 20 * dayMs].map((at) => record({ requestId: requestIdAt(at) }));
  if (!gone || !stays || !rest) throw new Error("three rows");
  await insertSearches(opened.database, [gone, stays, rest]);
  expect(await keep(7)).toBe(1);
  expect(await days()).toContain(nameOf(kept));
  expect([await logged(gone), await logged(rest)]).toEqual([undefined, undefined]);
  expect(await logged(stays)).toMatchObject({ requestId: stays.requestId });

  expect(await keep(0)).toBe(9);
  expect([await days(), await countRows()]).toEqual([[], 0]);
  expect(await keep(7)).toBe(0);
  expect(await days()).toHaveLength(8);
});

test("maintenance waits for no reader: it gives up, and the next run does it", async () => {
  await keep(7);
  await asOwner(opened.url, async (reader) => {
    await reader.query("begin");
    await reader.query("select from search_log");
    expect(await rotateDays(opened.database, 0)).toBe(0);
    expect(await days()).toHaveLength(8);
    await reader.query("rollback");
  });
  expect(await keep(0)).toBe(8);
  await keep(7);
});

test("a process may not delete rows, change what was searched, or remove rows of an organization that exists", async () => {
  const { database } = opened;
  for (const statement of ["delete from search_log", "update search_log set keyword = ''", "truncate search_log"]) {
    await expect(database.query(statement)).rejects.toThrow("permission denied");
  }
  await expect(database.query("select from search_log_rest")).rejects.toThrow("permission denied");
  await expect(eraseRows(database, organizationId)).rejects.toThrow("was not erased");
  await expect(rotateDays(database, 401)).rejects.toThrow("0 to 400 days");
});

test("a search that ends after its organization was erased leaves no row, and the others of its batch do", async () => {
  const erased = await createPayer(opened.database);
  await asOwner(opened.url, "update organizations set erased_at = now() where id = $1", [erased]);
  const [own, other] = [record({ organizationId: erased }), record()];
  await insertSearches(opened.database, [own, other]);
  expect((await readSearches(opened.database, erased, [own.requestId])).size).toBe(0);
  expect(await logged(other)).toBeDefined();
});

const log = openLog({ name: "test", level: "silent" });

/** A log whose Postgres is at this address. */
function logAt(url: string) {
  const shutdown = new Shutdown();
  const metrics = openMetrics();
  const database = openDatabase({ url, name: "test", sizeMax: 1, log, shutdown });
  const counts = async () =>
    Object.fromEntries((await metrics.searchLogRows.get()).values.map(({ labels, value }) => [labels.outcome, value]));
  return {
    searchLog: new LogWriter<SearchRecord>({ insert: (batch) => insertSearches(database, batch), metrics, log }),
    counts,
    close: () => shutdown.run(log),
  };
}

test("rows wait while Postgres is busy, are written once it is not, and are counted", async () => {
  const { searchLog, counts, close } = logAt(opened.url);
  const records = [record(), record(), record()];
  await asOwner(opened.url, async (owner) => {
    await owner.query("begin");
    await owner.query("lock table search_log");
    for (const one of records) searchLog.add(one);
    await eventually(async () => {
      const { rows } = await owner.query(
        "select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())",
      );
      return rows.length > 0;
    });
    expect(await counts()).toEqual({ written: 0, dropped: 0 });
    await owner.query("rollback");
  });
  await searchLog.close();
  expect(await counts()).toEqual({ written: 3, dropped: 0 });
  expect(await Promise.all(records.map(logged))).not.toContain(undefined);
  await close();
});

test("without Postgres at most 10,000 rows wait, further ones are dropped at once, and the rest when the process stops", async () => {
  const { searchLog, counts, close } = logAt("postgres://127.0.0.1:1/none");
  const one = record();
  for (let added = 0; added < 10_007; added += 1) searchLog.add(one);
  expect(await counts()).toEqual({ written: 0, dropped: 7 });
  await searchLog.close();
  expect(await counts()).toEqual({ written: 0, dropped: 10_007 });
  await close();
});

test("a batch that Postgres refuses is dropped, and the next one is written", async () => {
  const { searchLog, counts, close } = logAt(opened.url);
  searchLog.add(record({ query: query({ depth: 10 }), durationMs: 1e12 }));
  await eventually(async () => (await counts()).dropped === 1);
  const next = record();
  searchLog.add(next);
  await searchLog.close();
  expect(await counts()).toEqual({ written: 1, dropped: 1 });
  expect(await logged(next)).toBeDefined();
  await close();
});

import { afterAll, expect, test } from "vitest";
import { openDatabase } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";
import { insertSearches, LogWriter, type SearchRecord } from "../../../shared/search-log/search-log.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

/** Rows of the search log that wait in a process, while Postgres is slow, away, or refuses them. */

const opened = await openFreshDatabase();
afterAll(opened.close);
const organizationId = await createPayer(opened.database);

function record(fields: Partial<SearchRecord> = {}): SearchRecord {
  const known = { requestId: newId("req"), organizationId, tokenId: newId("tok"), keyHash: undefined, query: query() };
  return { ...known, durationMs: 12, trace: undefined, ...fields };
}

async function logged({ requestId }: SearchRecord) {
  return (await readSearches(opened.database, organizationId, [requestId])).get(requestId);
}

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

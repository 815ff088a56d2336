import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { formatTable } from "../harness/format-table.ts";
import { verifyLedger } from "../../commands/ledger.ts";
import { readChart } from "../../api/billing/overview/usage.ts";
import { readLedgerDays } from "../../shared/credits/ledger-days.ts";
import { historyFilters, readHistory } from "../../api/ledger/history.ts";
import { decideSettlements, type SettlementRequest } from "../../shared/credits/ledger.ts";
import { type Database, openDatabase } from "../../shared/database/pool.ts";
import { newId } from "../../shared/ids.ts";
import { startPostgres } from "../../local/postgres.ts";
import { openLog } from "../../shared/log.ts";
import { createOrganization } from "../../shared/organizations/organizations.ts";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { countRefunds } from "../harness/fixtures/backdate-ledger.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";

const runs = 15;
const pageSize = 25;
const days = 30;
/** Each has half of the searches. */
const tokens = [newId("tok"), newId("tok")] as const;
const batchSize = 256;
const newCharges = 1_000;
const observedEveryMs = 5;
const priceMils = 5;

type Row = [what: string, medianMs: string];

/** Measures the queries of the account pages, and the cost of their index, on organizations with very long ledgers. */
export async function measureHistory({ entries }: { entries: number }): Promise<string> {
  const postgres = await startPostgres();
  const shutdown = new Shutdown();
  const log = openLog({ name: "bench", level: "silent" });
  try {
    const { url } = await freshDatabaseIn(postgres.url);
    const database = openDatabase({ url, name: "bench", sizeMax: 1, log, shutdown });
    const usual = await fill(database, url, { entries, refunds: Math.ceil(entries / 33) });
    const refused = await fill(database, url, { entries: 1, refunds: entries });
    await fillSearchLog(url, usual);
    await asOwner(url, "vacuum analyze ledger_entries, refunds, refund_counts, search_log");

    const rows = [
      ...(await measureReads(database, usual, refused)),
      ...(await measureCharts(database, usual)),
      ...(await measureSettling(database, usual, "")),
      ...(await measureVerification(database, url, usual)),
    ];
    await asOwner(url, "drop index not_charges_by_organization");
    rows.push(...(await measureSettling(database, usual, ", without the index")));
    return formatTable(["on an organization with many entries", "ms (median)"], rows);
  } finally {
    await shutdown.run(log);
    await postgres.stop();
  }
}

async function measureReads(database: Database, usual: string, refused: string): Promise<Row[]> {
  const rows: Row[] = [
    ["30 days, 3 % of searches not charged", await medianMs(() => readLedgerDays(database, usual, { days }))],
    ["30 days, no search charged", await medianMs(() => readLedgerDays(database, refused, { days }))],
  ];
  for (const filter of historyFilters) {
    const read = () => readHistory(database, usual, { filter, limit: pageSize });
    rows.push([`a page of the history: ${filter}`, await medianMs(read)]);
  }
  const none = () => readHistory(database, refused, { filter: "charged", limit: pageSize });
  return [...rows, ["a page of the history: charged, of which there are none", await medianMs(none)]];
}

/** The charts that read more than the days of the ledger. */
async function measureCharts(database: Database, organizationId: string): Promise<Row[]> {
  const [tokenId] = tokens;
  const ofDays = { days: await readLedgerDays(database, organizationId, { days }), keptDays: days } as const;
  const views = [
    { name: `${days} days of latency`, view: { measure: "latency", range: "30d", tokenId: undefined } },
    { name: `${days} days of latency, one of two tokens`, view: { measure: "latency", range: "30d", tokenId } },
    { name: `${days} days of searches, one of two tokens`, view: { measure: "searches", range: "30d", tokenId } },
  ] as const;
  const rows: Row[] = [];
  for (const { name, view } of views)
    rows.push([name, await medianMs(() => readChart(database, organizationId, { view, ...ofDays }))]);
  return rows;
}

async function measureSettling(database: Database, organizationId: string, how: string): Promise<Row[]> {
  const settle = (wanted: "charge" | "refund") => () => {
    const endings = Array.from({ length: batchSize }, (): SettlementRequest => {
      if (wanted === "charge") return chargeOf(organizationId, { priceMils });
      return { requestId: newId("req"), organizationId, wanted, reason: "provider_unavailable" };
    });
    return decideSettlements(database, endings);
  };
  return [
    [`settling ${batchSize} charges${how}`, await medianMs(settle("charge"))],
    [`settling ${batchSize} refunds${how}`, await medianMs(settle("refund"))],
  ];
}

/** The first `ledger verify`, the usual one after some more charges, and that of everything. */
async function measureVerification(database: Database, url: string, organizationId: string): Promise<Row[]> {
  const rows: Row[] = [];
  for (const kind of ["first", "usual", "full"] as const) {
    const endings = Array.from({ length: newCharges }, () => chargeOf(organizationId, { priceMils }));
    for (let at = 0; at < newCharges; at += batchSize)
      await decideSettlements(database, endings.slice(at, at + batchSize));
    const measured = await asOwner(url, (observer) => observe(observer, database, kind === "full"));
    const { ms, longestMs, grownMb, report } = measured;
    if (!report.ok) throw new Error(`the ledger is broken: ${JSON.stringify(report.violations)}`);
    const what = `the ${kind} check, of ${report.readEntries} entries`;
    rows.push([what, ms.toFixed(0)], [`${what}: the longest transaction`, longestMs.toFixed(0)]);
    rows.push([`${what}: memory, in MB more than before`, grownMb.toFixed(0)]);
  }
  return rows;
}

/** Asks Postgres meanwhile for how long a transaction of the check lasts, and by how much this process grows. */
async function observe(observer: Client, database: Database, isFull: boolean) {
  const beganAtMs = performance.now();
  const bytesBefore = process.memoryUsage.rss();
  const check = verifyLedger(database, undefined, { isFull });
  const isOver = () => Promise.race([check.then(() => true), sleep(observedEveryMs, false)]);
  let longestMs = 0;
  let bytesMax = bytesBefore;
  while (!(await isOver())) {
    const { rows } = await observer.query(
      `select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 * 1000 as ms
       from pg_stat_activity where application_name = 'serpmill-bench' and state <> 'idle'`,
    );
    longestMs = Math.max(longestMs, Number(rows[0]?.ms));
    bytesMax = Math.max(bytesMax, process.memoryUsage.rss());
  }
  const ms = performance.now() - beganAtMs;
  return { report: await check, ms, longestMs, grownMb: (bytesMax - bytesBefore) / 1e6 };
}

async function medianMs(call: () => Promise<unknown>): Promise<string> {
  await call(); // The first call also plans the query and fills caches.
  const times: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const beganAtMs = performance.now();
    await call();
    times.push(performance.now() - beganAtMs);
  }
  return (times.toSorted((one, other) => one - other)[Math.floor(runs / 2)] ?? 0).toFixed(1);
}

/**
 * Creates an organization whose entries and refunds span 60 days: a grant, then charges, of which one in a thousand is reversed.
 * It writes as the owner, because the ledger's functions only write entries of now.
 */
async function fill(database: Database, url: string, { entries, refunds }: { entries: number; refunds: number }) {
  const created = await createOrganization(database, { name: "Bench", planCode: "payg" });
  if (!created) throw new Error("there is no plan payg");
  const { organizationId } = created;
  const at = "now() - make_interval(secs => 5184000.0 * ($2::bigint - n) / $2::bigint)";
  await asOwner(url, async (client) => {
    await client.query(
      `insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason,
         created_at, token_id)
       select $1, n, kind, amount, sum(amount) over (order by n), case when kind <> 'grant' then $1 || request end,
         case when kind = 'grant' then $1 || 'grant' end,
         case kind when 'reversal' then 'caller_disconnected' when 'grant' then 'bench' end, ${at},
         case when kind <> 'grant' then ($3::text[])[1 + request % 2] end
       from (select n, kind, case when kind = 'reversal' then n - 1 else n end as request,
               case kind when 'grant' then $2::bigint * 10 when 'charge' then -${priceMils} else ${priceMils} end as amount
             from (select n, case when n = 1 then 'grant' when n % 1000 = 501 then 'reversal' else 'charge' end as kind
                   from generate_series(1, $2::bigint) n) numbered) entries`,
      [organizationId, entries, tokens],
    );
    await client.query(
      `insert into refunds (request_id, organization_id, version, reason, token_id, created_at)
       select $1 || 'refund' || n, $1, 1, 'provider_unavailable', ($3::text[])[1 + n % 2], ${at} from generate_series(1, $2::bigint) n`,
      [organizationId, refunds, tokens],
    );
    await countRefunds(client, organizationId);
    await client.query(
      `update organizations set version = $2, balance_mils = (select balance_after_mils from ledger_entries
         where organization_id = $1 and version = $2) where id = $1`,
      [organizationId, entries],
    );
  });
  return organizationId;
}

/** Fills the search log of the last days, with a partition per day, as the service would have. */
async function fillSearchLog(url: string, organizationId: string): Promise<void> {
  await asOwner(url, async (client) => {
    await client.query(
      `do $$ declare day date; begin
         for ago in 1..${days} loop
           day := utc_today() - ago;
           execute format('create table search_log_%s partition of search_log for values from (%L) to (%L)', to_char(day, 'YYYYMMDD'),
             day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
         end loop;
       end $$`,
    );
    await client.query(
      `insert into search_log (at, request_id, organization_id, token_id, keyword, location, language, device, depth, duration_ms)
       select created_at, request_id, organization_id, token_id, 'garden pump', 'United States', 'English', 'desktop', 10,
         100 + version % 3000
       from ledger_entries where organization_id = $1 and kind = 'charge'
         and created_at >= (utc_today() - ${days})::timestamp at time zone 'UTC'`,
      [organizationId],
    );
  });
}

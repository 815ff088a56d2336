import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { stringify } from "csv-stringify/sync";
import { Turns } from "../../../shared/concurrency/turns.ts";
import { type HistoryEntry, type HistoryFilter, readHistory } from "../../../shared/credits/history.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { unavailable } from "../../errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import type { AccountRequest } from "../frame/account-handlers.ts";
import { readHistoryView } from "./history-view.ts";

const rowsMax = 100_000;
const rowsPerRead = 1_000;
const downloadMsMax = 60_000;
// Bounds the memory of readers that stop. An organization has one download at a time.
const processDownloadsMax = 20;
const retryAfterMs = 5_000;

const columns = ["time_utc", "outcome", "id", "reason", "mils"] as const;
type Row = Record<(typeof columns)[number], string | number>;

/**
 * GET /billing/searches.csv: the filtered history, newest first. In a file with the whole history, the mils add up to the
 * balance.
 */
export function sendCsvExport({ pages, database }: { pages: PageSender; database: Database }) {
  const downloading = new Set<string>();
  // One read of the ledger at a time, and only while a reader takes what was read: one that stops delays no other download.
  const reads = new Turns();
  const read: ReadEntries = (organizationId, page) => reads.run(() => readHistory(database, organizationId, page));
  return async ({ request, response, caller: { organizationId } }: AccountRequest) => {
    const { filter } = readHistoryView(request);
    if (downloading.has(organizationId))
      throw new CallerError("rate_limited", { reason: "downloads", limit: 1, retryAfterMs });
    if (downloading.size >= processDownloadsMax) throw unavailable("too_many_downloads", retryAfterMs);
    downloading.add(organizationId);
    try {
      const chunks = csvChunks(read, organizationId, filter);
      const first = await chunks.next(); // A failure up to here is still sent as an error page.
      pages.setHeaders(response);
      response.setHeader("Content-Type", "text/csv; charset=utf-8");
      response.setHeader("Content-Disposition", `attachment; filename="serpmill-${filter}.csv"`);
      const text = Readable.from(prepend(first.value ?? "", chunks));
      await pipeline(text, response, { signal: AbortSignal.timeout(downloadMsMax) }).catch(() => {
        // The status line is out, so only a broken connection can report that the file is incomplete.
        requestScopeOf(response).logFields.outcome = "cut_short";
        response.destroy();
      });
    } finally {
      downloading.delete(organizationId);
    }
  };
}

async function* prepend(first: string, rest: AsyncIterable<string>) {
  yield first;
  yield* rest;
}

type ReadEntries = (
  organizationId: string,
  page: { filter: HistoryFilter; before: number | undefined; limit: number },
) => Promise<HistoryEntry[]>;

async function* csvChunks(read: ReadEntries, organizationId: string, filter: HistoryFilter): AsyncGenerator<string> {
  let before: number | undefined;
  for (let rows = 0; rows < rowsMax; rows += rowsPerRead) {
    const entries = await orPostgresUnavailable(read(organizationId, { filter, before, limit: rowsPerRead }));
    // A text that a spreadsheet would run as a formula is escaped.
    const options = { columns: [...columns], header: rows === 0, escape_formulas: true };
    yield stringify(entries.map(rowOf), options);
    if (entries.length < rowsPerRead) return;
    before = entries.at(-1)?.version;
  }
}

function rowOf(entry: HistoryEntry): Row {
  const row = { time_utc: entry.at.toISOString(), outcome: entry.outcome };
  switch (entry.outcome) {
    case "charged":
      return { ...row, id: entry.requestId, reason: "", mils: -entry.chargedMils };
    case "refunded":
    case "reversed":
      return { ...row, id: entry.requestId, reason: entry.reason, mils: 0 };
    default:
      return { ...row, id: entry.grantId, reason: entry.note, mils: entry.grantedMils };
  }
}

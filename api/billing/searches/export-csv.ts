import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { stringify } from "csv-stringify/sync";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { FoundSearches, SearchEntry } from "../../ledger/find-searches.ts";
import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import { unavailable } from "../../errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import type { AccountRequest } from "../frame/account-handlers.ts";
import { type LedgerView, type LongReads, readEntries, readLedgerView } from "./history.ts";

const rowsMax = 100_000;
// Few, so that a read takes Postgres about two milliseconds, and so that it always chooses the index.
const rowsPerRead = 100;
const downloadMsMax = 60_000;
// Bounds memory if readers stop reading. An organization has one download at a time.
const processDownloadsMax = 20;
const retryAfterMs = 5_000;

const ledgerColumns = ["time_utc", "outcome", "id", "reason", "mils"] as const;
/** Empty for an entry that is not in the search log, except the token: the ledger keeps it, so that a payer can bill by it. */
const searchColumns = [
  "keyword",
  "country",
  "language",
  "device",
  "location",
  "depth",
  "duration_ms",
  "token",
] as const;
type SearchRow = Record<(typeof searchColumns)[number], string | number>;
type LedgerRow = Record<(typeof ledgerColumns)[number], string | number> & Pick<Partial<SearchRow>, "token">;

interface ExportParts {
  pages: PageSender;
  database: Database;
  /** One read of the ledger at a time. A reader that stops holds no turn, so it delays no other download. */
  reads: LongReads;
  /** The organizations that download now. */
  downloading: Set<string>;
}

/**
 * GET /billing/searches.csv: the filtered history, or the found searches, newest first. The mils of the whole history add up to the
 * balance.
 */
export async function sendCsvExport(
  { pages, database, reads, downloading }: ExportParts,
  { request, response, caller: { organizationId } }: AccountRequest,
): Promise<void> {
  const view = readLedgerView(request);
  if (downloading.has(organizationId))
    throw new CallerError("rate_limited", { reason: "downloads", limit: 1, retryAfterMs });
  if (downloading.size >= processDownloadsMax) throw unavailable("too_many_downloads", retryAfterMs);
  downloading.add(organizationId);
  const read: ReadEntries = (part) =>
    reads.run(() => readEntries(database, organizationId, part, rowsPerRead), organizationId);
  try {
    const chunks = csvChunks(read, view);
    const first = await chunks.next(); // Up to here a failure is sent as an error page.
    pages.setHeaders(response);
    response.setHeader("Content-Type", "text/csv; charset=utf-8");
    response.setHeader("Content-Disposition", `attachment; filename="serpmill-${view.filter}.csv"`);
    const text = Readable.from(prepend(first.value ?? "", chunks));
    await pipeline(text, response, { signal: AbortSignal.timeout(downloadMsMax) }).catch(() => {
      // The status is already sent, so only a broken connection can signal that the file is incomplete.
      requestScopeOf(response).logFields.outcome = "cut_short";
      response.destroy();
    });
  } finally {
    downloading.delete(organizationId);
  }
}

async function* prepend(first: string, rest: AsyncIterable<string>) {
  yield first;
  yield* rest;
}

type ReadEntries = (view: LedgerView) => Promise<FoundSearches>;

async function* csvChunks(read: ReadEntries, view: LedgerView): AsyncGenerator<string> {
  let before: string | undefined;
  let header = true;
  for (let rows = 0; rows < rowsMax; ) {
    const { entries, older } = await read({ ...view, before });
    // Escapes texts that a spreadsheet would run as formulas.
    const options = { columns: [...ledgerColumns, ...searchColumns], header, escape_formulas: true };
    yield stringify(
      entries.map((entry) => ({ ...ledgerPart(entry), ...searchPart(entry.search) })),
      options,
    );
    if (older === undefined) return;
    before = older;
    header = false;
    rows += entries.length;
  }
}

function searchPart(search: LoggedSearch | undefined): Partial<SearchRow> {
  if (!search) return {};
  const { keyword, language, device, location, depth } = search.query;
  const token = search.token.name ?? search.token.tokenId;
  return {
    keyword,
    country: location.slice(location.lastIndexOf(",") + 1),
    language,
    device,
    location,
    depth,
    duration_ms: search.durationMs,
    token,
  };
}

function ledgerPart(entry: SearchEntry): LedgerRow {
  const row = { time_utc: entry.at.toISOString(), outcome: entry.outcome };
  switch (entry.outcome) {
    case "charged":
      return { ...row, id: entry.requestId, reason: "", mils: -entry.chargedMils, token: entry.token ?? "" };
    case "refunded":
    case "reversed":
      return { ...row, id: entry.requestId, reason: entry.reason, mils: 0, token: entry.token ?? "" };
    case "corrected":
      return { ...row, id: entry.correctionId, reason: entry.note, mils: entry.correctedMils };
    default:
      return { ...row, id: entry.grantId, reason: entry.note, mils: entry.grantedMils };
  }
}

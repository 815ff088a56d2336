import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { stringify } from "csv-stringify/sync";
import type { Request, Response } from "express";
import { type HistoryEntry, type HistoryFilter, readHistory } from "../../../shared/credits/history.ts";
import { CallerError } from "../../../shared/errors.ts";
import { unavailable } from "../../errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { setRateLimitHeaders } from "../../http/rate-limit-headers.ts";
import { orUnavailable, readCredit } from "../reads/load-account.ts";
import type { Billing } from "../billing.ts";
import { setPageHeaders } from "../send-page.ts";
import { readView } from "./billing-page.ts";
import { requireSession } from "../session/require-session.ts";

const rowsMax = 100_000;
const rowsAtOnce = 1_000;
const downloadMsMax = 60_000;
// Each has one statement under way at a time; most connections stay with the searches. An organization has one of them.
const downloadsAtOnceMax = 2;
const retryAfterMs = 5_000;

const columns = ["time_utc", "outcome", "id", "reason", "mils"] as const;
type Row = Record<(typeof columns)[number], string | number>;

/**
 * GET /billing/searches.csv: the history as it is filtered, newest first. Of one that is wholly in the file, the mils add
 * up to the balance.
 */
export function handleCsvExport(billing: Billing) {
  const { context } = billing;
  const underWay = new Set<string>();
  return async (request: Request, response: Response) => {
    const { caller } = await requireSession(context, request, response);
    const { filter } = readView(request);
    const { window } = await readCredit(context, caller);
    const { organizationId } = caller;
    if (underWay.has(organizationId))
      throw new CallerError("rate_limited", { reason: "downloads", limit: 1, retryAfterMs });
    if (underWay.size >= downloadsAtOnceMax) throw unavailable("too_many_downloads", retryAfterMs);
    underWay.add(organizationId);
    try {
      const chunks = chunksOf(billing, organizationId, filter);
      const first = await chunks.next(); // What fails here can still be told as a page.
      setPageHeaders(billing, request, response);
      setRateLimitHeaders(response, caller.plan, window);
      response.setHeader("Content-Type", "text/csv; charset=utf-8");
      response.setHeader("Content-Disposition", `attachment; filename="serpmill-${filter}.csv"`);
      const text = Readable.from(prepended(first.value ?? "", chunks));
      await pipeline(text, response, { signal: AbortSignal.timeout(downloadMsMax) }).catch(() => {
        // Half a file cannot be taken back; the broken connection tells the browser.
        requestScopeOf(response).logFields.outcome = "cut_short";
        response.destroy();
      });
    } finally {
      underWay.delete(organizationId);
    }
  };
}

async function* prepended(first: string, rest: AsyncIterable<string>) {
  yield first;
  yield* rest;
}

async function* chunksOf({ context }: Billing, organizationId: string, filter: HistoryFilter): AsyncGenerator<string> {
  let before: number | undefined;
  for (let rows = 0; rows < rowsMax; rows += rowsAtOnce) {
    const wanted = { filter, before, limit: rowsAtOnce };
    const entries = await orUnavailable(readHistory(context.database, organizationId, wanted));
    // A text that a spreadsheet would take for a formula is made one that it does not.
    const options = { columns: [...columns], header: rows === 0, escape_formulas: true };
    yield stringify(entries.map(rowOf), options);
    if (entries.length < rowsAtOnce) return;
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

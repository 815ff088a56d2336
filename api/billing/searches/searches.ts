import type { Request } from "express";
import type { Database } from "../../../shared/database/pool.ts";
import { type DayFigures, readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import type { FoundSearches, SearchEntry } from "../../ledger/find-searches.ts";
import { scannedMax } from "../../ledger/history.ts";
import {
  findLastScanned,
  findRefused,
  type LoggedRefusal,
  readRefused,
} from "../../../shared/search-log/refused-searches.ts";
import { readTokenChoice } from "../../tokens/account-tokens.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountRequest } from "../frame/account-handlers.ts";
import type { LiveSections } from "../frame/live-updates.ts";
import { onlyTokenOf } from "../session/sessions.ts";
import {
  filterLabels,
  findForm,
  historyTableByDay,
  type HistoryView,
  historyViewQuery,
  isFinding,
  isNarrowed,
  isOfLedger,
  isRequestId,
  type LongReads,
  readEntries,
  readHistoryView,
  readLedgerView,
  spanOf,
  utcDayOf,
  type ViewFilter,
  viewFilters,
} from "./history.ts";
import { refusedTable } from "./refused.ts";
import { amount, count, searches } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

const entriesPerPage = 25;

export interface SearchesParts {
  database: Database;
  longReads: LongReads;
}

/** GET /billing/searches: what each search was charged, or why it was not, and the credit that was added. */
export async function writeSearches(parts: SearchesParts, { request, caller }: AccountRequest): Promise<AccountView> {
  const { organizationId } = caller;
  const only = onlyTokenOf(caller);
  const asked = readHistoryView(request);
  const view = { ...asked, tokenId: only ?? asked.tokenId };
  const history = await readPage(parts, organizationId, view);
  const listed = await readTokenChoice(parts.database, organizationId, view.tokenId);
  const tokens = listed.filter(({ tokenId }) => only === undefined || tokenId === only);
  return {
    path: "/billing/searches",
    title: "Searches",
    // Found searches stay: finding them again for each search that ends would cost more than the searches.
    live: isNarrowed(view) || !isOfLedger(view) ? undefined : `/billing/searches/live?${historyViewQuery(view)}`,
    body: html`${findForm(view, tokens)}
${historySection(history, only === undefined)}`,
  };
}

/** The reads of streams take turns among themselves. No one waits in them for the pages of another organization. */
const inTurnAlready: LongReads = { run: (read) => read() };

/** GET /billing/searches/live: the newest page as it changes. A person who reads an older page keeps it. */
export function liveSearches({ database }: Pick<SearchesParts, "database">) {
  const parts = { database, longReads: inTurnAlready };
  return (request: Request): LiveSections => {
    const view = readLedgerView(request);
    return {
      ofCredit: () => [],
      ofLedger: async ({ caller }) => {
        if (view.before !== undefined || isNarrowed(view)) return [];
        return [{ id: "history", html: historySection(await readPage(parts, caller.organizationId, view), true) }];
      },
    };
  };
}

interface History extends FoundSearches {
  view: HistoryView;
  /** The figures of each whole day that has an entry on the page, by UTC day; none in a list of found searches. */
  days: Map<string, DayFigures>;
  refused: LoggedRefusal[];
}

async function readPage(
  { database, longReads }: SearchesParts,
  organizationId: string,
  view: HistoryView,
): Promise<History> {
  if (!isOfLedger(view)) return readRefusedPage({ database, longReads }, organizationId, view);
  const read = () => readEntries(database, organizationId, view, entriesPerPage);
  const isLong = isFinding(view) || view.filter === "charged";
  const page = await (isLong ? longReads.run(read, organizationId) : read());
  const days = new Map<string, DayFigures>();
  const isSought = page.entries.length === 0 && isRequestId(view.find);
  if (isSought) return readRefusedPage({ database, longReads }, organizationId, view);
  if (isFinding(view)) return { view, days, refused: [], ...page };
  // One after the other: a page has few days, unless the organization searches seldom.
  for (const day of new Set(page.entries.map(utcDayOf))) {
    const [figures] = await readLedgerDays(database, organizationId, { from: day, days: 1 });
    if (figures) days.set(day, figures);
  }
  return { view, days, refused: [], ...page };
}

async function readRefusedPage(
  { database, longReads }: SearchesParts,
  organizationId: string,
  view: HistoryView,
): Promise<History> {
  const { find, tokenId } = view;
  if (isRequestId(find)) {
    const sought = await findRefused(database, find, organizationId);
    const refused = sought && (tokenId ?? sought.tokenId) === sought.tokenId ? [sought] : [];
    return { view, days: new Map(), entries: [], refused, older: undefined, isCutShort: false };
  }
  const wanted = { ...view, ...spanOf(view), limit: entriesPerPage + 1 };
  const read = async () => {
    const found = await readRefused(database, organizationId, wanted);
    const refused = found.slice(0, entriesPerPage);
    if (found.length > refused.length) return { refused, older: refused.at(-1)?.requestId, isCutShort: false };
    const older = await findLastScanned(database, organizationId, wanted);
    return { refused, older, isCutShort: older !== undefined };
  };
  return { view, days: new Map(), entries: [], ...(await longReads.run(read, organizationId)) };
}

function historySection(history: History, hasAccount: boolean): Html {
  const { view, entries, refused } = history;
  const hasRows = entries.length + refused.length > 0;
  const table =
    refused.length > 0
      ? refusedTable(refused)
      : historyTableByDay(entries, (day, shown) => daySummary(history.days.get(day), shown));
  return html`<section id="history" aria-label="History">
<div class="head"><nav class="switch" aria-label="Show">${viewFilters.map((filter) => filterLink(filter, view))}</nav>${hasAccount && isOfLedger(view) && html`<a class="button" href="/billing/searches.csv?${historyViewQuery({ ...view, before: undefined })}">Download CSV</a>`}</div>
${hasRows ? table : html`<p class="nothing">${emptyText(history)}</p>`}
${!isOfLedger(view) && html`<p class="aside">Kept for at most seven days, with the valid fields of each query. If many are refused in one minute, the first ten are listed and the others counted.</p>`}
${history.isCutShort && html`<p class="aside">This page covers ${count(scannedMax)} ${isOfLedger(view) && !isFinding(view) ? "entries of the ledger" : "searches"}. Older ones may also match.</p>`}
${pager(history)}
</section>`;
}

/** Sums up the whole day, whatever the filter and the page show of it. Among found searches only those on the page are known. */
function daySummary(day: DayFigures | undefined, shown: readonly SearchEntry[]): Html {
  if (day)
    return html`Whole day: ${searches(day.charges + day.refunds)}, ${amount(day.chargedMils - day.reversedMils)} net`;
  const netMils = shown.reduce((sum, entry) => sum + (entry.outcome === "charged" ? entry.chargedMils : 0), 0);
  return html`On this page: ${searches(shown.length)}, ${amount(netMils)} net`;
}

function filterLink(filter: ViewFilter, view: HistoryView): Html {
  const current = filter === view.filter && html` aria-current="page"`;
  const address = `/billing/searches?${historyViewQuery({ ...view, filter, before: undefined })}`;
  return html`<a href="${address}"${current}>${filterLabels[filter]}</a>`;
}

function emptyText({ view, isCutShort }: History): string {
  const { filter, before, find } = view;
  if (find?.startsWith("req_")) return "No completed or refused search has this ID.";
  if (isCutShort) return "Nothing found so far.";
  if (filter === "refused") return isNarrowed(view) ? "Nothing found." : "There are no refused searches.";
  if (isFinding(view)) return "Nothing found. Only searches whose keyword is still in the search log can be found.";
  if (before !== undefined) return "There are no older entries.";
  if (isNarrowed(view)) return "There are no entries on these days.";
  if (filter === "all") return "No searches yet. The first one appears here when it ends.";
  return `There are no entries under “${filterLabels[filter]}”.`;
}

function pager({ view, older }: History): Html | false {
  const hasNewer = view.before !== undefined;
  if (!hasNewer && older === undefined) return false;
  const address = (before: string | undefined) => `/billing/searches?${historyViewQuery({ ...view, before })}`;
  return html`<nav class="pager" aria-label="Pages">${hasNewer && html`<a class="button" href="${address(undefined)}">Newest</a>`}${older !== undefined && html`<a class="button" href="${address(older)}">Older</a>`}</nav>`;
}

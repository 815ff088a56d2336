import type { Request } from "express";
import { z } from "zod";
import {
  historyCursor,
  type HistoryEntry,
  type HistoryFilter,
  historyFilters,
  readHistory,
  readSearchEntries,
  type TimeSpan,
} from "../../ledger/history.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { idForm, requestId } from "../../../shared/ids.ts";
import { keywordCharactersMax } from "../../../shared/query/query.ts";
import { findSearches, type FoundSearches, type SearchEntry } from "../../ledger/find-searches.ts";
import { type LoggedSearch, readSearches } from "../../../shared/search-log/read-search-log.ts";
import type { RefundReason, ReversalReason } from "../../../shared/outcomes.ts";
import { amount, dateOf, plural, timeElement, timeOf } from "../../pages/format.ts";
import { optionList } from "../../pages/form.ts";
import { type Html, html } from "../../pages/html.ts";
import type { AccountToken } from "../../tokens/tokens.ts";

/** One read of many rows at a time, so that people who only turn pages do not wait for it. Organizations take turns. */
export interface LongReads {
  run: <Found>(read: () => Promise<Found>, organizationId: string) => Promise<Found>;
}

/** What a page shows: a part of the ledger's history, or the searches that were refused. */
export const viewFilters = [...historyFilters, "refused"] as const;
export type ViewFilter = (typeof viewFilters)[number];

export interface HistoryView<Filter = ViewFilter> {
  filter: Filter;
  /** A part of the keyword, or the id of a request; undefined for every search. */
  find: string | undefined;
  tokenId: string | undefined;
  /** The first and the last UTC day, such as `2026-03-01`. */
  from: string | undefined;
  to: string | undefined;
  /** Where the page begins: a cursor of the history, or the id of the search before it among found searches. Undefined for the newest page. */
  before: string | undefined;
}

export type LedgerView = HistoryView<HistoryFilter>;

export const isOfLedger = (view: HistoryView): view is LedgerView => view.filter !== "refused";

/** Whether the view shows searches found in the search log instead of the whole history. */
export const isFinding = ({ find, tokenId }: Pick<HistoryView, "find" | "tokenId">) =>
  find !== undefined || tokenId !== undefined;

/** Whether the view leaves out searches by anything but their outcome. */
export const isNarrowed = (view: HistoryView) => isFinding(view) || view.from !== undefined || view.to !== undefined;

const dayMs = 86_400_000;
const midnightOf = (day: string) => new Date(`${day}T00:00Z`);

export const isRequestId = (find: string | undefined): find is string => requestId.safeParse(find).success;

/** The time span of a view's days. A request id is found on whatever day. */
export const spanOf = ({ find, from, to }: HistoryView): TimeSpan =>
  isRequestId(find)
    ? {}
    : {
        since: from === undefined ? undefined : midnightOf(from),
        until: to === undefined ? undefined : new Date(midnightOf(to).getTime() + dayMs),
      };

const orNothing = (text: string) => (text === "" ? undefined : text);

const dayField = z
  .union([z.literal(""), z.iso.date().startsWith("20")])
  .default("")
  .transform(orNothing);

const viewQuery = z
  .object({
    show: z.enum(viewFilters).default("all"),
    find: z
      .string()
      .trim()
      .max(2 * keywordCharactersMax) // A character may have two code units.
      .regex(/^\P{Cc}*$/u)
      .default("")
      .transform(orNothing),
    token: z
      .union([z.literal(""), z.string().regex(idForm("tok"))])
      .default("")
      .transform(orNothing),
    from: dayField,
    to: dayField,
    before: z.union([historyCursor, requestId]).optional(),
  })
  .refine(({ show, find, token: tokenId, before }) => {
    const isByRequest = show === "refused" || isFinding({ find, tokenId });
    return before === undefined || isByRequest === before.startsWith("req_");
  });

/** Reads the view from a request's query. @throws {CallerError} `not_found` for a view that does not exist. */
export function readHistoryView(request: Request): HistoryView {
  const parsed = viewQuery.safeParse(request.query);
  if (!parsed.success) throw new CallerError("not_found");
  const { show: filter, token: tokenId, ...others } = parsed.data;
  return { filter, tokenId, ...others, before: others.before };
}

/** Reads a view of the ledger. @throws {CallerError} `not_found` for every other. */
export function readLedgerView(request: Request): LedgerView {
  const view = readHistoryView(request);
  if (!isOfLedger(view)) throw new CallerError("not_found");
  return view;
}

/** The query that {@link readHistoryView} reads back. */
export function historyViewQuery({ filter: show, tokenId: token, find, from, to, before }: HistoryView): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries({ show, find, token, from, to, before }))
    if (value !== undefined) fields.append(name, value);
  return fields.toString();
}

/**
 * Reads at most `limit` entries of a view, newest first, with their queries. A request id is looked up in the history, so that it is
 * found whatever the days of the view, and even if the search log does not have it.
 */
export async function readEntries(
  database: Database,
  organizationId: string,
  view: LedgerView,
  limit: number,
): Promise<FoundSearches> {
  const { filter, find, tokenId, before } = view;
  const span = spanOf(view);
  if (isRequestId(find)) {
    const found = await withSearches(
      database,
      organizationId,
      await readSearchEntries(database, organizationId, [find]),
    );
    const entries = found.filter(({ search }) => tokenId === undefined || search?.token.tokenId === tokenId);
    return { entries, older: undefined, isCutShort: false };
  }
  if (isFinding(view))
    return findSearches(database, organizationId, { keyword: find, tokenId, filter, before, limit, ...span });
  const { entries, ...end } = await readHistory(database, organizationId, { filter, before, limit, ...span });
  return { entries: await withSearches(database, organizationId, entries), ...end };
}

/** Adds the search log's data to entries of an organization. */
export async function withSearches(
  database: Database,
  organizationId: string,
  entries: SearchEntry[],
): Promise<SearchEntry[]> {
  const ids = entries.flatMap((entry) => ("requestId" in entry ? [entry.requestId] : []));
  const searches = await readSearches(database, organizationId, ids);
  return entries.map((entry) => ("requestId" in entry ? { ...entry, search: searches.get(entry.requestId) } : entry));
}

/** Writes the summary beside the date in the heading of a UTC day, such as `2026-03-01`. */
type DaySummary = (day: string, entries: readonly SearchEntry[]) => Html;

const columns = html`<thead><tr><th scope="col">When (UTC)</th><th scope="col" class="what">What</th><th scope="col" class="how">Outcome</th><th scope="col" class="more">Token</th><th scope="col" class="more number">Took</th><th scope="col" class="number">Dollars</th></tr></thead>`;
/** A heading spans only columns that every screen shows: a hidden column that it spans would take space. */
const headingColumns = 3;

/** Entries of the history, newest first. Each search links to its page. */
export function historyTable(entries: readonly SearchEntry[]): Html {
  return html`<table class="history entries">
${columns}
<tbody>
${entries.map((entry) => row(entry))}</tbody>
</table>`;
}

/** The same, with a row group and heading for each UTC day. */
export function historyTableByDay(entries: readonly SearchEntry[], summaryOf: DaySummary): Html {
  return html`<table class="history entries by-day">
${columns}
${byDay(entries).map(
  ([day, ofDay]) => html`<tbody>
<tr class="date"><th scope="rowgroup" colspan="${headingColumns}"><time datetime="${day}">${dateOf(new Date(day))}</time> <span>${summaryOf(day, ofDay)}</span></th><td class="more" colspan="2"></td><td></td></tr>
${ofDay.map((entry) => row(entry, timeOf(entry.at)))}</tbody>
`,
)}</table>`;
}

// Sorted, because an entry that waited for a lock at midnight is among those of the next day.
const byDay = (entries: readonly SearchEntry[]) =>
  [...Map.groupBy(entries, utcDayOf)].toSorted(([one], [other]) => (one < other ? 1 : -1));

/** The UTC day of an entry, such as `2026-03-01`. */
export const utcDayOf = ({ at }: { at: Date }) => at.toISOString().slice(0, 10);

/** @param when the part of its time that the table does not already show, if it shows some. */
function row(entry: SearchEntry, when?: string): Html {
  const { search, at } = entry;
  const { title, why, net } = outcomeOf(entry);
  return html`<tr>
<td class="when">${timeElement(at, when)}</td>
<td class="what">${whatOf(entry)}</td>
<td class="how"><span class="outcome ${entry.outcome}">${title}</span>${"requestId" in entry && why && html` <span class="why">${why}</span>`}</td>
<td class="more">${search ? tokenLabel(search.token) : ""}</td>
<td class="more number">${search && duration(search.durationMs)}</td>
<td class="number net">${net}</td>
</tr>
`;
}

/** The query; the id of a search whose query is not kept; or the note of a credit. */
function whatOf(entry: SearchEntry): Html {
  const { search } = entry;
  if (search)
    return html`<a class="keyword" href="${searchAddress(search.requestId)}">${search.query.keyword}</a> <span class="place">${placeOf(search)}</span>`;
  if ("requestId" in entry)
    return html`<code><a href="${searchAddress(entry.requestId)}">${entry.requestId}</a></code>`;
  return html`${entry.note} <code>${"grantId" in entry ? entry.grantId : entry.correctionId}</code>`;
}

export const searchAddress = (id: string) => `/billing/searches/${id}`;

/** `Berlin, Germany · German · mobile · 20 results` */
function placeOf({ query: { location, language, device, depth } }: LoggedSearch): string {
  return [location.replaceAll(",", ", "), language, device, plural(depth, "result")].join(" · ");
}

/** `420 ms`, `1.24 s` */
export const duration = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(2)} s`);

/** The outcome of an entry, why, and the change of the balance. */
export function outcomeOf(entry: HistoryEntry): { title: string; why: string | undefined; net: Html } {
  switch (entry.outcome) {
    case "charged":
      return { title: "Charged", why: undefined, net: amount(-entry.chargedMils) };
    case "refunded":
      return { title: "Not charged", why: refundLabels[entry.reason], net: amount(0) };
    case "reversed":
      return { title: "Credited back", why: reversalLabels[entry.reason], net: amount(0) };
    case "corrected":
      return { title: "Credit corrected", why: entry.note, net: gained(entry.correctedMils) };
    default:
      return { title: "Credit added", why: entry.note, net: gained(entry.grantedMils) };
  }
}

/** An amount with its sign. */
export const gained = (mils: number) => html`${mils > 0 && "+"}${amount(mils)}`;

/** The ledger's reasons and filters in words for payers. */

const refundLabels: Record<RefundReason, string> = {
  out_of_credits: "There was not enough credit to charge it",
  daily_limit: "The organization's daily limit was reached before it could be charged",
  monthly_limit: "The organization's monthly limit was reached before it could be charged",
  token_daily_limit: "The token's daily limit was reached before it could be charged",
  token_monthly_limit: "The token's monthly limit was reached before it could be charged",
  already_paid: "A repeat of a search that was already paid for under its Idempotency-Key",
  idempotency_key_reused: "Its Idempotency-Key was already used to pay for another query",
  provider_unavailable: "The search provider is down or overloaded. Search again in a few minutes",
  provider_refused: "The search provider refused the service. If it continues, tell the operator",
  unreadable_answer: "The search provider’s answer could not be read. Search again; if it continues, tell the operator",
  engine_timeout: "No answer arrived before the deadline",
  query_rejected: "No search provider can run this query. Check its place and language",
  deadline_passed: "The deadline passed before the search started",
  caller_disconnected: "The caller disconnected before the answer",
  not_enqueued: "The service could not accept the search",
  admission_unknown: "The service could not confirm that the search had started",
  worker_failed: "The service had an internal error",
  swept: "The service did not finish the search in time",
};

const reversalLabels: Record<ReversalReason, string> = {
  caller_disconnected: "The caller disconnected before the answer arrived",
  engine_timeout: "The answer arrived too late",
  undelivered: "Delivery of the answer was not confirmed",
};

export const filterLabels: Record<ViewFilter, string> = {
  all: "All",
  charged: "Charged",
  refunded: "Not charged",
  reversed: "Credited back",
  grants: "Credit added",
  refused: "Refused",
};

export type FindableToken = Pick<AccountToken, "tokenId" | "name" | "last4" | "revokedAt">;

/** The form that finds searches. It is outside the live section, so that no input is lost. */
export function findForm(view: HistoryView, tokens: readonly FindableToken[]): Html {
  const { filter, find = "", tokenId, from = "", to = "" } = view;
  return html`<form class="find" role="search" action="/billing/searches">
${filter !== "all" && html`<input type="hidden" name="show" value="${filter}">`}
<label>Keyword or request ID <input type="search" name="find" value="${find}" maxlength="${keywordCharactersMax}" autocomplete="off"></label>
<label>Token <select name="token"><option value="">Any</option>${tokenOptions(tokens, tokenId)}</select></label>
<label>From <input type="date" name="from" value="${from}"></label>
<label>To <input type="date" name="to" value="${to}"></label>
<button>Find</button>${isNarrowed(view) && html` <a class="button" href="/billing/searches">Show all</a>`}
<p class="aside">Days are UTC: ${usualDays(new Date()).map((days) => daysLink(view, days))}</p>
</form>`;
}

/** Days that people often look at. */
function usualDays(now: Date) {
  const ago = (days: number) => new Date(now.getTime() - days * dayMs).toISOString().slice(0, 10);
  return [
    { label: "today", from: ago(0), to: ago(0) },
    { label: "yesterday", from: ago(1), to: ago(1) },
    { label: "last 7 days", from: ago(6), to: ago(0) },
  ];
}

function daysLink(view: HistoryView, { label, from, to }: ReturnType<typeof usualDays>[number]): Html {
  const current = from === view.from && to === view.to && html` aria-current="true"`;
  const address = `/billing/searches?${historyViewQuery({ ...view, from, to, before: undefined })}`;
  return html`<a href="${address}"${current}>${label}</a> `;
}

export function tokenOptions(tokens: readonly FindableToken[], chosen: string | undefined): Html {
  const labelOf = (token: FindableToken) => `${tokenLabel(token)}${token.revokedAt ? ", revoked" : ""}`;
  return optionList(
    tokens.map((token) => [token.tokenId, labelOf(token)]),
    chosen,
  );
}

/** The name of a token, else its last characters, else its id (once its organization is erased). */
export const tokenLabel = ({ name, last4, tokenId }: LoggedSearch["token"]): string =>
  name ?? (last4 ? `smk_…${last4}` : tokenId);

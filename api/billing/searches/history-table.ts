import type { RefundReason, ReversalReason } from "../../../shared/outcomes.ts";
import type { HistoryEntry } from "../../ledger/history.ts";
import type { SearchEntry } from "../../ledger/find-searches.ts";
import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import { tokenLabel } from "./find-form.ts";
import type { ViewFilter } from "./history-view.ts";
import { amount, dateOf, dayOf, timeElement, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** Writes the summary beside the date in the heading of a UTC day, such as `2026-03-01`. */
type DaySummary = (day: string, entries: readonly SearchEntry[]) => Html;

const columns = html`<thead><tr><th scope="col">When (UTC)</th><th scope="col" class="what">What</th><th scope="col" class="how">Outcome</th><th scope="col" class="more">Token</th><th scope="col" class="more number">Took</th><th scope="col" class="number">Dollars</th></tr></thead>`;
/** A heading spans only columns that every screen shows: a hidden column that it spans would take space. */
const headingColumns = 3;

/** Entries of the history, newest first. Each search links to its page. */
export function historyTable(entries: readonly SearchEntry[]): Html {
  const when = (at: Date) => html`${dayOf(at)} <span>${timeOf(at)}</span>`;
  return html`<table class="history entries">
${columns}
<tbody>
${entries.map((entry) => row(entry, when(entry.at)))}</tbody>
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

/** @param when the part of its time that the table does not already show. */
function row(entry: SearchEntry, when: Html | string): Html {
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

export const searchAddress = (requestId: string) => `/billing/searches/${requestId}`;

/** `Berlin, Germany · German · mobile · 20 results` */
function placeOf({ query: { location, language, device, depth } }: LoggedSearch): string {
  return [location.replaceAll(",", ", "), language, device, `${depth} ${depth === 1 ? "result" : "results"}`].join(
    " · ",
  );
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
  query_rejected: "The search provider rejected the query",
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

import { type HistoryEntry, type HistoryFilter, historyFilters } from "../../../shared/credits/history.ts";
import { type HistoryView, historyViewQuery } from "../reads/history-view.ts";
import type { History } from "../reads/load-account.ts";
import { count, dayOf, timeOf } from "./format.ts";
import { html, type Html } from "./html.ts";
import { filterLabels, refundLabels, reversalLabels } from "./labels.ts";

/** The latest searches and added credit: what each search was charged, or why it was not. */
export function historySection(history: History): Html {
  const { view, entries } = history;
  return html`<section id="history" aria-labelledby="history-title">
<div class="head"><h2 id="history-title">History</h2><a class="button" href="/billing/searches.csv?${historyViewQuery({ ...view, before: undefined })}">Download CSV</a></div>
<nav class="filters" aria-label="Show">${historyFilters.map((filter) => filterLink(filter, view))}</nav>
${entries.length > 0 ? table(entries) : emptyMessage(view)}
${pager(history)}
</section>`;
}

function filterLink(filter: HistoryFilter, view: HistoryView): Html {
  const current = filter === view.filter && html` aria-current="page"`;
  const address = `/billing?${historyViewQuery({ filter, before: undefined })}#history`;
  return html`<a href="${address}"${current}>${filterLabels[filter]}</a>`;
}

function table(entries: readonly HistoryEntry[]): Html {
  return html`<table class="history">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">What</th><th scope="col" class="number">Mils</th></tr></thead>
<tbody>
${entries.map(row)}</tbody>
</table>`;
}

function row(entry: HistoryEntry): Html {
  const { title, why, id, amount } = textOf(entry);
  return html`<tr>
<td class="when"><time datetime="${entry.at.toISOString()}">${dayOf(entry.at)} <span>${timeOf(entry.at)}</span></time></td>
<td><span class="outcome ${entry.outcome}">${title}</span> ${why && html`<span class="why">${why}</span>`}<code>${id}</code></td>
<td class="number">${amount}</td>
</tr>
`;
}

function textOf(entry: HistoryEntry): { title: string; why: string | undefined; id: string; amount: Html | string } {
  switch (entry.outcome) {
    case "charged":
      return { title: "Charged", why: undefined, id: entry.requestId, amount: `−${count(entry.chargedMils)}` };
    case "refunded":
      return { title: "Not charged", why: refundLabels[entry.reason], id: entry.requestId, amount: "0" };
    case "reversed":
      return {
        title: "Credited back",
        why: reversalLabels[entry.reason],
        id: entry.requestId,
        amount: html`<s>−${count(entry.chargedMils)}</s> 0`,
      };
    default:
      return { title: "Credit added", why: entry.note, id: entry.grantId, amount: `+${count(entry.grantedMils)}` };
  }
}

function emptyMessage({ filter, before }: HistoryView): Html {
  const text =
    before !== undefined
      ? "There are no older entries."
      : filter === "all"
        ? "No searches yet. The first one appears here once it is answered."
        : `There are no entries under “${filterLabels[filter]}”.`;
  return html`<p class="nothing">${text}</p>`;
}

function pager({ view, entries, hasOlder }: History): Html | false {
  const hasNewer = view.before !== undefined;
  if (!hasNewer && !hasOlder) return false;
  const address = (before: number | undefined) => `/billing?${historyViewQuery({ ...view, before })}#history`;
  return html`<nav class="pager" aria-label="Pages">${hasNewer && html`<a class="button" href="${address(undefined)}">Newest</a>`}${hasOlder && html`<a class="button" href="${address(entries.at(-1)?.version)}">Older</a>`}</nav>`;
}

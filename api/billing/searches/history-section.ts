import { type HistoryFilter, historyFilters } from "../../../shared/credits/history.ts";
import { html, type Html } from "../../pages/html.ts";
import type { History } from "../frame/account-reads.ts";
import { historyTable } from "./history-table.ts";
import { type HistoryView, historyViewQuery } from "./history-view.ts";
import { filterLabels } from "./labels.ts";

/** One page of the searches and the added credit: what each search was charged, or why it was not. */
export function historySection(history: History): Html {
  const { view, entries } = history;
  return html`<section id="history" aria-label="History">
<div class="head"><nav class="filters" aria-label="Show">${historyFilters.map((filter) => filterLink(filter, view))}</nav><a class="button" href="/billing/searches.csv?${historyViewQuery({ ...view, before: undefined })}">Download CSV</a></div>
${entries.length > 0 ? historyTable(entries) : emptyMessage(view)}
${pager(history)}
</section>`;
}

function filterLink(filter: HistoryFilter, view: HistoryView): Html {
  const current = filter === view.filter && html` aria-current="page"`;
  const address = `/billing/searches?${historyViewQuery({ filter, before: undefined })}`;
  return html`<a href="${address}"${current}>${filterLabels[filter]}</a>`;
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
  const address = (before: number | undefined) => `/billing/searches?${historyViewQuery({ ...view, before })}`;
  return html`<nav class="pager" aria-label="Pages">${hasNewer && html`<a class="button" href="${address(undefined)}">Newest</a>`}${hasOlder && html`<a class="button" href="${address(entries.at(-1)?.version)}">Older</a>`}</nav>`;
}

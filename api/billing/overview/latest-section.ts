import type { HistoryEntry } from "../../../shared/credits/history.ts";
import { html, type Html } from "../../pages/html.ts";
import { historyTable } from "../searches/history-table.ts";

/** The newest entries of the history, with the way to all of them. */
export function latestSection(entries: readonly HistoryEntry[]): Html {
  return html`<section id="latest" aria-labelledby="latest-title">
<div class="head"><h2 id="latest-title">Latest</h2>${entries.length > 0 && html`<a class="button" href="/billing/searches">All searches</a>`}</div>
${entries.length > 0 ? historyTable(entries) : html`<p class="nothing">No searches yet. The first one appears here once it is answered.</p>`}
</section>`;
}

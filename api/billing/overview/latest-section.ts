import type { HistoryEntry } from "../../../shared/credits/history.ts";
import { html, type Html } from "../../pages/html.ts";
import { historyTable } from "../searches/history-table.ts";

/** Entries that the overview shows. */
export const latestShown = 6;

/** The newest entries of the history, or before the first search how to make it. @param apiUrl the address of this API. */
export function latestSection(entries: readonly HistoryEntry[], apiUrl: string): Html {
  return html`<section id="latest" aria-labelledby="latest-title">
${isNew(entries) ? firstSearch(apiUrl) : html`<div class="head"><h2 id="latest-title">Latest</h2><a class="button" href="/billing/searches">All searches</a></div>`}
${entries.length > 0 && historyTable(entries)}
</section>`;
}

/** Whether the newest entries are all there are, and none is of a search. */
export const isNew = (entries: readonly HistoryEntry[]) =>
  entries.length < latestShown && entries.every(({ outcome }) => outcome === "granted" || outcome === "corrected");

/** The token is read into a variable, so that no shell keeps it in its history. */
function firstSearch(apiUrl: string): Html {
  return html`<div class="card first">
<h2 id="latest-title">Make your first search</h2>
<ol>
<li>Put a token into a variable. This line asks for it without showing it:
<pre tabindex="0" aria-label="Command that asks for the token"><code class="all">read -rs SERPMILL_TOKEN</code></pre></li>
<li>Search:
<div class="snippet"><pre tabindex="0" aria-label="Command that searches"><code class="all" id="first-curl">curl ${apiUrl}/v1/serp/search \\
  -H "Authorization: Bearer $SERPMILL_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '{"keyword":"coffee"}'</code></pre>
<button type="button" class="plain" data-copy="first-curl" hidden>Copy</button></div></li>
</ol>
<p class="aside">The result appears here at once. The <a href="/docs">reference</a> has every field. <a href="/billing/tokens">Tokens</a> for programs need only the scope <code>search</code>.</p>
</div>`;
}

import { searchAddress } from "../billing/searches/history-table.ts";
import { html, type Html } from "../pages/html.ts";
import { formAddress } from "./form-address.ts";
import type { SessionSearch } from "./session-searches.ts";

/** The searches of the session: each leads to its own page, and back into the form. */
export function sessionSection(searches: readonly SessionSearch[]): Html | false {
  if (searches.length === 0) return false;
  return html`<section class="panel beside" id="session" aria-labelledby="session-title"><h2 id="session-title">This session</h2>
<ol class="recent">${searches.map(entry)}</ol></section>`;
}

function entry({ requestId, query }: SessionSearch): Html {
  if (!query) return html`<li><a href="${searchAddress(requestId)}">${requestId}</a></li>`;
  const { keyword, location, device, depth } = query;
  return html`<li><a href="${searchAddress(requestId)}">${keyword}</a>
<span class="aside">${location.replaceAll(",", ", ")} · ${device} · depth ${depth}</span>
<a class="again" href="${formAddress(query)}" aria-label="Edit: ${keyword}">Edit</a></li>`;
}

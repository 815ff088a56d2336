import { organicPerPage } from "../../shared/query/depth.ts";
import { searchAddress } from "../billing/searches/history-table.ts";
import { html, type Html } from "../pages/html.ts";
import type { SessionSearch } from "./session-searches.ts";

/** The searches of the session: each leads to its own page, and back into the form. */
export function sessionSection(searches: readonly SessionSearch[]): Html | false {
  if (searches.length === 0) return false;
  return html`<section class="panel" id="session" aria-labelledby="session-title"><h2 id="session-title">This session</h2>
<ol class="recent">${searches.map(entry)}</ol></section>`;
}

function entry({ requestId, query }: SessionSearch): Html {
  if (!query) return html`<li><a href="${searchAddress(requestId)}">${requestId}</a></li>`;
  const { keyword, location, device, depth } = query;
  return html`<li><a href="${searchAddress(requestId)}">${keyword}</a>
<span class="why">${location.replaceAll(",", ", ")} · ${device} · depth ${depth}</span>
<a href="/playground?${formAddress(query)}" aria-label="Edit: ${keyword}">Edit</a></li>`;
}

/** The query as the address of the form has it, without what is the default. */
function formAddress(query: NonNullable<SessionSearch["query"]>): string {
  const { keyword, location, language, device, depth, targetDomain = "", types = [], format = "" } = query;
  const fields = new URLSearchParams({ keyword, location, language });
  const others = {
    targetDomain,
    format,
    device: device === "desktop" ? "" : device,
    depth: depth === organicPerPage ? "" : String(depth),
  };
  for (const [name, value] of Object.entries(others)) if (value !== "") fields.append(name, value);
  for (const type of types) fields.append("types", type);
  return fields.toString();
}

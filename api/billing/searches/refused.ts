import { type ErrorCode, errors } from "../../../shared/errors.ts";
import type { LoggedRefusal } from "../../../shared/search-log/refused-searches.ts";
import { remedies } from "../../docs/error-sections.ts";
import { helpPathOf } from "../../http/send-error.ts";
import { count, shortMomentOf, timeElement } from "../../pages/format.ts";
import { html, type Html, withCode } from "../../pages/html.ts";
import type { AccountView } from "../frame/account-frame.ts";
import { querySection } from "./answer-view.ts";
import { searchAddress, tokenLabel } from "./history.ts";

/** Searches that were refused before they ran: as rows, and as the page of one. */

/** Refused searches, newest first. Each links to its page. */
export function refusedTable(refused: readonly LoggedRefusal[]): Html {
  return html`<table class="history entries">
<thead><tr><th scope="col">When (UTC)</th><th scope="col" class="what">What</th><th scope="col" class="how">Outcome</th><th scope="col" class="more">Token</th></tr></thead>
<tbody>
${refused.map(row)}</tbody>
</table>`;
}

function row(refusal: LoggedRefusal): Html {
  const { at, requestId, refusals, query, code, message } = refusal;
  const { keyword, ...others } = query ?? {};
  // Without the scope, the request is not read.
  const without = code === "unauthenticated" ? "Not read" : "No valid keyword";
  const shown = refusals > 1 ? `${count(refusals)} more in the same minute` : (keyword ?? without);
  return html`<tr>
<td class="when">${timeElement(at)}</td>
<td class="what"><a class="keyword" href="${searchAddress(requestId)}">${shown}</a> <span class="place">${placeOf(others)}</span></td>
<td class="how"><span class="outcome refused">${statusOf(code)} ${code}</span> <span class="why">${withCode(message)}</span></td>
<td class="more">${tokenLabel(tokenOf(refusal))}</td>
</tr>
`;
}

function placeOf({ location, language, device, depth }: NonNullable<LoggedRefusal["query"]>): string {
  const parts = [location?.replaceAll(",", ", "), language, device, depth && `depth ${depth}`];
  return parts.filter((part) => part !== undefined).join(" · ");
}

const tokenOf = ({ tokenId, tokenName: name, tokenLast4: last4 }: LoggedRefusal) => ({ tokenId, name, last4 });

/** A code of another release has no status here. */
const isKnown = (code: string): code is ErrorCode => Object.hasOwn(errors, code);
const statusOf = (code: string) => (isKnown(code) ? errors[code].status : "");

/** The page of one refused search: status, reason and advice, and the valid fields of its query. */
export function refusedView(refusal: LoggedRefusal): AccountView {
  const { at, requestId, code, reason, message, query, refusals } = refusal;
  const arrived = timeElement(at, shortMomentOf(at));
  return {
    path: "/billing/searches",
    title: query?.keyword ?? "Refused search",
    above: { path: "/billing/searches?show=refused", label: "Refused searches" },
    body: html`<div class="pair">
<section class="panel" aria-labelledby="outcome-title">
<h2 id="outcome-title"><span class="outcome refused">Refused</span> ${statusOf(code)} <code>${code}</code></h2>
<p>${withCode(message)}</p>
${reason !== null && html`<p>Reason: <code>${reason}</code></p>`}
${isKnown(code) && html`<p><strong>What to do:</strong> ${withCode(remedies[code])} <a href="${helpPathOf(code)}">About this error</a></p>`}
${refusals > 1 && html`<p>${count(refusals)} searches of this minute were counted, not logged one by one. This is the last one.</p>`}
<p><code>${requestId}</code></p>
<p class="aside">Nothing was charged. Refused searches are kept for at most seven days.</p>
</section>
${querySection(query ?? {}, tokenOf(refusal), [["Arrived (UTC)", arrived]], "Only the valid fields are kept.")}
</div>`,
  };
}

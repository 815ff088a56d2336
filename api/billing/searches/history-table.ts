import type { HistoryEntry } from "../../../shared/credits/history.ts";
import { count, dayOf, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { refundLabels, reversalLabels } from "./labels.ts";

/** Entries of the history, the newest first. */
export function historyTable(entries: readonly HistoryEntry[]): Html {
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

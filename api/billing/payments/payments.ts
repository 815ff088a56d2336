import { readAutoTopup } from "../../../shared/auto-topups/auto-topup.ts";
import { statementMonths } from "../../../shared/credits/statement.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { showOrganization } from "../../../shared/organizations/organizations.ts";
import { isAutomatic, type ListedTopup, listTopups } from "../../../shared/topups/list-topups.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { newForm, type SentForm } from "../../pages/form-fields.ts";
import { amount, dateOf, dayOf, momentOf, monthOf, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountHandlers, PageRequest } from "../frame/account-handlers.ts";
import { type AddCredit, addCreditSection } from "../overview/add-credit-section.ts";
import { messageOf } from "./auto-topup-messages.ts";
import { autoTopupSection } from "./auto-topup-section.ts";

const topupsPerPage = 25;

/** What the page and its forms need. */
export interface PaymentParts {
  account: AccountHandlers;
  database: Database;
  addCredit: AddCredit;
}

/** GET /billing/payments: what was paid, with receipts, automatic top-ups, and the monthly statements. */
export function writePayments(parts: PaymentParts) {
  return (asked: PageRequest): Promise<AccountView> => paymentsView(parts, asked, newForm);
}

/** @param sent a form about automatic top-ups that was not accepted. */
export async function paymentsView(
  { database, addCredit }: PaymentParts,
  { request, caller: { organizationId }, name }: PageRequest,
  sent: SentForm,
): Promise<AccountView> {
  const before = versionOf(request.query["before"]);
  const [topups, organization, autoTopup] = await orPostgresUnavailable(
    Promise.all([
      listTopups(database, organizationId, { before, limit: topupsPerPage + 1 }),
      showOrganization(database, organizationId),
      readAutoTopup(database, organizationId),
    ]),
  );
  const now = new Date();
  const months = statementMonths(organization?.createdAt ?? now, now);
  const offer = typeof addCredit === "object" && "amountsMils" in addCredit ? addCredit : undefined;
  const message = request.method === "GET" ? messageOf(request.query["done"], autoTopup) : undefined;
  return {
    path: "/billing/payments",
    title: "Payments",
    body: html`${message !== undefined && html`<p class="notice" role="status">${message}</p>`}
${addCreditSection(addCredit, { name, organizationId })}
${offer && autoTopupSection({ organizationId, autoTopup, offeredMils: offer.amountsMils, sent })}
<div class="pair paid">
${topupSection(topups, { before, hasReceipts: offer !== undefined })}
${statementSection(months)}
</div>`,
  };
}

/** The version from an address; undefined for anything else than one. */
function versionOf(value: unknown): number | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

function topupSection(
  topups: readonly ListedTopup[],
  { before, hasReceipts }: { before: number | undefined; hasReceipts: boolean },
): Html {
  const shown = topups.slice(0, topupsPerPage);
  const older = topups.length > topupsPerPage ? shown.at(-1)?.version : undefined;
  return html`<section id="topups" aria-labelledby="topups-title">
<div class="head"><h2 id="topups-title">Top-ups</h2></div>
${shown.length === 0 ? html`<p class="nothing">No top-up${before === undefined ? " yet" : " before that"}.</p>` : topupTable(shown, hasReceipts)}
${(before !== undefined || older !== undefined) && html`<nav class="pager" aria-label="Pages of top-ups">${before !== undefined && html`<a class="button" href="/billing/payments">Newest</a>`} ${older !== undefined && html`<a class="button" href="/billing/payments?before=${older}">Older</a>`}</nav>`}
</section>`;
}

function topupTable(topups: readonly ListedTopup[], hasReceipts: boolean): Html {
  return html`<div class="scroll" tabindex="0" role="group" aria-labelledby="topups-title"><table class="history stacked">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">How</th><th scope="col">Receipt</th><th scope="col" class="number">Amount</th></tr></thead>
<tbody>
${topups.map(
  ({ at, mils, grantId }) => html`<tr>
<td class="when" data-label="When (UTC)"><time datetime="${at.toISOString()}" title="${momentOf(at)}">${dateOf(at)} <span>${timeOf(at)}</span></time></td>
<td data-label="How">${isAutomatic(grantId) ? "Automatic" : "By hand"}</td>
<td data-label="Receipt">${hasReceipts ? html`<a href="/billing/receipts/${grantId}" rel="noreferrer">Receipt<span class="hidden"> of ${dayOf(at)}, ${timeOf(at)}</span></a>` : html`<code>${grantId}</code>`}</td>
<td class="number" data-label="Amount">${amount(mils)}</td>
</tr>
`,
)}</tbody>
</table></div>`;
}

function statementSection(months: readonly string[]): Html {
  return html`<section id="statements" aria-labelledby="statements-title">
<div class="head"><h2 id="statements-title">Statements</h2></div>
<ul class="months">${months.map(
    (
      month,
      index,
    ) => html`<li><span><a href="/billing/statements/${month}">${monthOf(month)}</a>${index === 0 && html` <span class="aside">so far</span>`}</span> <a href="/billing/statements.csv?month=${month}" aria-label="CSV of ${monthOf(month)}">CSV</a></li>
`,
  )}</ul>
</section>`;
}

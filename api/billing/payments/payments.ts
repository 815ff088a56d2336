import { type AutoTopupTerms, readAutoTopup } from "../../auto-topups/auto-topup.ts";
import { removeCard, switchOff, switchOn } from "../../auto-topups/audited-changes.ts";
import { statementMonths } from "../../ledger/statement.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { showOrganization } from "../../../shared/organizations/organizations.ts";
import { isAutomatic, isTopupOf, type ListedTopup, listTopups } from "../../ledger/ledger-pages.ts";
import { changeAccount } from "../frame/account-change.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountHandlers, AccountRequest, FormRequest, PageRequest } from "../frame/account-handlers.ts";
import { type AddCredit, addCreditSection } from "./add-credit.ts";
import { autoTopupPaths, autoTopupSection, choices, type Done, messageOf } from "./auto-topup.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { type FieldProblems, newForm, parseDollars, type SentForm } from "../../pages/form.ts";
import { amount, dateOf, dayOf, monthOf, timeElement, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import type { AutoTopups } from "../../topups/auto-topups.ts";
import type { Topups } from "../../topups/topups.ts";

const topupsPerPage = 25;

/** What the page and its forms need. */
interface PaymentParts {
  account: AccountHandlers;
  database: Database;
  addCredit: AddCredit;
}

/** GET /billing/payments: what was paid, with receipts, automatic top-ups, and the monthly statements. */
export function writePayments(parts: PaymentParts) {
  return (asked: PageRequest): Promise<AccountView> => paymentsView(parts, asked, newForm);
}

/** @param sent a form about automatic top-ups that was not accepted. */
async function paymentsView(
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
<td class="when" data-label="When (UTC)">${timeElement(at, html`${dateOf(at)} <span>${timeOf(at)}</span>`)}</td>
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

const grantIds = /^(cs|pi)_\w{1,250}$/;

/** GET /billing/receipts/:grant: leads the browser to Stripe's receipt of a top-up of this organization. */
export function sendToReceipt({ database, topups }: { database: Database; topups: Topups }) {
  return async ({ request, response, caller }: AccountRequest): Promise<void> => {
    const grantId = request.params["grant"];
    if (typeof grantId !== "string" || !grantIds.test(grantId)) throw new CallerError("not_found");
    const isOwn = await orPostgresUnavailable(isTopupOf(database, caller.organizationId, grantId));
    if (!isOwn) throw new CallerError("not_found");
    const { url } = await topups.findReceipt(grantId);
    response.writeHead(303, { Location: url }).end();
  };
}

type Parts = PaymentParts & { topups: Topups | undefined; autoTopups: AutoTopups | undefined };

interface FormRoute {
  path: string;
  /** Undefined if the operator has set up no payments. */
  handle: ((asked: FormRequest) => Promise<void>) | undefined;
}

/** The forms about automatic top-ups. */
export function autoTopupForms({ topups, autoTopups, ...parts }: Parts): FormRoute[] {
  const isOpen = topups !== undefined && autoTopups !== undefined;
  return [
    { path: autoTopupPaths.set, handle: isOpen ? setTerms(parts, topups.amountsMils) : undefined },
    { path: autoTopupPaths.off, handle: isOpen ? turnOff(parts) : undefined },
    { path: autoTopupPaths.card, handle: isOpen ? leadToStripe(autoTopups) : undefined },
    { path: autoTopupPaths.removeCard, handle: isOpen ? forgetCard(parts) : undefined },
  ];
}

/** Sets when and how much, and switches automatic top-ups on. */
function setTerms(parts: PaymentParts, offeredMils: readonly number[]) {
  return async (asked: FormRequest): Promise<void> => {
    const { form, caller } = asked;
    const known = await orPostgresUnavailable(readAutoTopup(parts.database, caller.organizationId));
    const { terms, problems } = readTerms(form, choices(offeredMils, known?.terms));
    if (!terms) {
      const view = await paymentsView(parts, asked, { values: form, problems });
      return parts.account.send(asked, 400, view);
    }
    const isOn = await changeAccount(parts.database, asked, (transaction, changer) =>
      switchOn(transaction, changer, terms),
    );
    leadBack(asked, isOn ? "on" : "no_card");
  };
}

const notAnAmount = "Expected an amount above zero with at most three decimals, such as 5 or 7.50.";

function readTerms(
  form: URLSearchParams,
  amountsMils: readonly number[],
): { terms: AutoTopupTerms | undefined; problems: FieldProblems } {
  const read = (name: string) => parseDollars(form.get(name) ?? "") ?? 0;
  const thresholdMils = read("threshold");
  const ceilingMils = read("ceiling");
  const amountMils = Number(form.get("mils"));
  const problems: Record<string, string> = {};
  if (thresholdMils === 0) problems["threshold"] = notAnAmount;
  if (!amountsMils.includes(amountMils)) problems["mils"] = "Choose one of these amounts.";
  if (ceilingMils === 0) problems["ceiling"] = notAnAmount;
  else if (ceilingMils < amountMils) problems["ceiling"] = "Expected at least the amount that is added each time.";
  const isValid = Object.keys(problems).length === 0;
  return { terms: isValid ? { thresholdMils, amountMils, ceilingMils } : undefined, problems };
}

function turnOff({ database }: PaymentParts) {
  return async (asked: FormRequest): Promise<void> => {
    await changeAccount(database, asked, (transaction, changer) => switchOff(transaction, changer));
    leadBack(asked, "off");
  };
}

function forgetCard({ database }: PaymentParts) {
  return async (asked: FormRequest): Promise<void> => {
    await changeAccount(database, asked, removeCard);
    leadBack(asked, "card_removed");
  };
}

/** Redirects the browser to Stripe's page for a card. The card arrives with Stripe's webhook. */
function leadToStripe(autoTopups: AutoTopups) {
  return async ({ response, caller: { organizationId }, name }: FormRequest): Promise<void> => {
    const holder = { organizationId, organizationName: name, returnPath: "/billing/payments" };
    const { url } = await orPostgresUnavailable(autoTopups.beginCard(holder));
    requestScopeOf(response).logFields.outcome = "card_begun";
    response.writeHead(303, { Location: url }).end();
  };
}

/** Leads the browser back to the page, so that loading it anew does not send the form again. */
function leadBack({ response }: FormRequest, what: Done): void {
  response.writeHead(303, { Location: `/billing/payments?done=${what}` }).end();
}

import {
  type AutoTopup,
  type AutoTopupTerms,
  type FailureReason,
  type LastFailure,
  readAutoTopup,
  type SavedCard,
} from "../../auto-topups/auto-topup.ts";
import { removeCard, switchOff, switchOn } from "../../auto-topups/audited-changes.ts";
import { statementMonths } from "../../ledger/statement.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { showOrganization } from "../../../shared/organizations/organizations.ts";
import { isAutomatic, isTopupOf, type ListedTopup, listTopups } from "../../ledger/ledger-pages.ts";
import { type AccountView, buttonForm, organizationField, removalForm, statusNotice } from "../frame/account-frame.ts";
import {
  type AccountHandlers,
  type AccountRequest,
  changeAccount,
  type FormRequest,
  leadTo,
  type PageRequest,
} from "../frame/account-handlers.ts";
import { type AddCredit, addCreditSection, amountOptions } from "./add-credit.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import {
  amountRule,
  dollarsField,
  type FieldProblems,
  newForm,
  parseDollars,
  selectField,
  type SentForm,
} from "../../pages/form.ts";
import { amount, dateOf, dayOf, momentOf, monthOf, timeElement, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import type { AutoTopups } from "../../topups/auto-topups.ts";
import type { Topups } from "../../topups/topups.ts";

const topupsPerPage = 25;

/** What the page and its forms need. */
export interface PaymentParts {
  account: AccountHandlers;
  database: Database;
  addCredit: AddCredit;
}

/**
 * GET /billing/payments: top-ups with their receipts, automatic top-up, and the monthly statements.
 * @param sent the form of automatic top-up, if it was refused.
 */
export async function writePayments(
  { database, addCredit }: PaymentParts,
  { request, caller: { organizationId }, name }: PageRequest,
  sent: SentForm = newForm,
): Promise<AccountView> {
  const before = versionOf(request.query["before"]);
  const [topups, organization, autoTopup] = await Promise.all([
    listTopups(database, organizationId, { before, limit: topupsPerPage + 1 }),
    showOrganization(database, organizationId),
    readAutoTopup(database, organizationId),
  ]);
  const now = new Date();
  const months = statementMonths(organization?.createdAt ?? now, now);
  const offer = typeof addCredit === "object" && "amountsMils" in addCredit ? addCredit : undefined;
  return {
    path: "/billing/payments",
    title: "Payments",
    body: html`${request.method === "GET" && statusNotice(messageOf(request.query, autoTopup))}
${addCreditSection(addCredit, { name, organizationId })}
${offer && autoTopupSection({ organizationId, autoTopup, offeredMils: offer.amountsMils, sent })}
<div class="pair paid">
${topupSection(topups, { before, hasReceipts: offer !== undefined })}
${statementSection(months)}
</div>`,
  };
}

/** Reads a version from an address; undefined if it is none. */
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
${shown.length === 0 ? html`<p class="nothing">No ${before === undefined ? "top-ups yet" : "earlier top-ups"}.</p>` : topupTable(shown, hasReceipts)}
${hasReceipts && shown.length > 0 && html`<p class="aside">A receipt confirms a payment; it is not a tax invoice. If you need an invoice, contact the operator of this service with the receipt.</p>`}
${(before !== undefined || older !== undefined) && html`<nav class="pager" aria-label="Pages of top-ups">${before !== undefined && html`<a class="button" href="/billing/payments">Newest</a>`} ${older !== undefined && html`<a class="button" href="/billing/payments?before=${older}">Older</a>`}</nav>`}
</section>`;
}

function topupTable(topups: readonly ListedTopup[], hasReceipts: boolean): Html {
  const proof = hasReceipts ? "Receipt" : "ID";
  return html`<div class="scroll" tabindex="0" role="group" aria-labelledby="topups-title"><table class="history stacked">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">How</th><th scope="col">${proof}</th><th scope="col" class="number">Amount</th></tr></thead>
<tbody>
${topups.map(
  ({ at, mils, grantId }) => html`<tr>
<td class="when" data-label="When (UTC)">${timeElement(at, html`${dateOf(at)} <span>${timeOf(at)}</span>`)}</td>
<td data-label="How">${isAutomatic(grantId) ? "Automatic top-up" : "One-time payment"}</td>
<td data-label="${proof}">${hasReceipts ? html`<a href="/billing/receipts/${grantId}" rel="noreferrer">Stripe receipt<span class="hidden"> of ${dayOf(at)}, ${timeOf(at)}</span></a>` : html`<code>${grantId}</code>`}</td>
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
export async function sendToReceipt(
  { database, topups }: { database: Database; topups: Topups },
  { request, response, caller }: AccountRequest,
): Promise<void> {
  const grantId = request.params["grant"];
  if (typeof grantId !== "string" || !grantIds.test(grantId)) throw new CallerError("not_found");
  const isOwn = await isTopupOf(database, caller.organizationId, grantId);
  if (!isOwn) throw new CallerError("not_found");
  const { url } = await topups.findReceipt(grantId);
  leadTo(response, url);
}

/** POST /billing/auto-topup: sets when and how much, and switches automatic top-up on. */
export async function handleTermsForm(parts: PaymentParts & { topups: Topups }, asked: FormRequest): Promise<void> {
  const { form, caller } = asked;
  const known = await readAutoTopup(parts.database, caller.organizationId);
  const { terms, problems } = readTerms(form, choices(parts.topups.amountsMils, known?.terms));
  if (!terms) {
    const view = await writePayments(parts, asked, { values: form, problems });
    return parts.account.send(asked, 400, view);
  }
  const shown = form.get("was");
  const outcome = await changeAccount(parts.database, asked, async (transaction, changer) => {
    const stored = stateOf(await readAutoTopup(transaction, caller.organizationId));
    // A page from before it was switched off must not allow charges again, and one from before its terms were changed must not set
    // those that it showed. A second click sends what is stored.
    if (shown !== null && ![shown, stateOf({ isOn: true, terms })].includes(stored)) return "changed_meanwhile";
    return switchOn(transaction, changer, terms);
  });
  leadBack(asked, outcome);
}

const notAnAmount = `Enter an amount above zero, such as 5 or 7.50. ${amountRule}`;

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
  else if (ceilingMils < amountMils) problems["ceiling"] = "Enter at least the amount of one top-up.";
  const isValid = Object.keys(problems).length === 0;
  return { terms: isValid ? { thresholdMils, amountMils, ceilingMils } : undefined, problems };
}

/** What the form changes, as text. */
const stateOf = ({ isOn = false, terms }: Partial<Pick<AutoTopup, "isOn" | "terms">> = {}) =>
  [isOn, terms?.thresholdMils, terms?.amountMils, terms?.ceilingMils].join();

/** POST /billing/auto-topup/off */
export async function handleOffForm({ database }: PaymentParts, asked: FormRequest): Promise<void> {
  await changeAccount(database, asked, switchOff, { isEnd: true });
  leadBack(asked, "off");
}

/** POST /billing/auto-topup/card/remove */
export async function handleRemoveCardForm({ database }: PaymentParts, asked: FormRequest): Promise<void> {
  await changeAccount(database, asked, removeCard, { isEnd: true });
  leadBack(asked, "card_removed");
}

/** POST /billing/auto-topup/card: redirects the browser to Stripe's page for a card. The card arrives with Stripe's webhook. */
export async function handleCardForm(
  { autoTopups }: { autoTopups: AutoTopups },
  { response, caller: { organizationId }, name }: FormRequest,
): Promise<void> {
  const holder = { organizationId, organizationName: name, returnPath: "/billing/payments" };
  const { url } = await autoTopups.beginCard(holder);
  requestScopeOf(response).logFields.outcome = "card_begun";
  leadTo(response, url);
}

/** Leads the browser back to the page, so that a reload does not send the form again. */
const leadBack = ({ response }: FormRequest, what: keyof typeof done) =>
  leadTo(response, `/billing/payments?done=${what}`);

interface Shown {
  organizationId: string;
  /** Undefined if the payer never began to save a card. */
  autoTopup: AutoTopup | undefined;
  offeredMils: readonly number[];
  sent: SentForm;
}

/** Automatic top-up: whether it is on, the saved card, and when and how much it is charged. */
function autoTopupSection(shown: Shown): Html {
  const { organizationId, autoTopup } = shown;
  return html`<section id="auto-topup" class="setting" aria-labelledby="auto-topup-title">
<div class="intro"><h2 id="auto-topup-title">Automatic top-up ${tag(autoTopup)}</h2>
<p class="aside">When your balance falls below an amount that you set, we charge your card automatically.</p></div>
<div class="settings">${autoTopup?.open && openNotice(autoTopup.open)}${state(autoTopup)}
${
  autoTopup?.card
    ? html`${cardLine(autoTopup.card, organizationId)}
${termsForm(shown)}`
    : firstCard(organizationId)
}</div>
</section>`;
}

function tag(autoTopup: AutoTopup | undefined): Html {
  if (!autoTopup?.isOn) return html`<span class="tag state">Off</span>`;
  return autoTopup.paused
    ? html`<span class="tag state paused">Paused</span>`
    : html`<span class="tag state on">On</span>`;
}

function state(autoTopup: AutoTopup | undefined): Html | false {
  if (!autoTopup?.isOn || !autoTopup.terms) return false;
  const { terms, paused, monthMils, lastFailure } = autoTopup;
  if (paused)
    return html`<div class="notice warning"><p><strong>Paused since ${momentOf(paused.at)}.</strong> ${pauseMessages[paused.reason]} Nothing is charged in the meantime.</p></div>`;
  const isFull = monthMils + terms.amountMils > terms.ceilingMils;
  return html`${lastFailure && failureNotice(lastFailure)}
<p>When the balance falls below ${amount(terms.thresholdMils)}, we charge your card ${amount(terms.amountMils)}. Used of the monthly limit: ${amount(monthMils)} of ${amount(terms.ceilingMils)}.</p>
${isFull && html`<p class="notice warning">Another ${amount(terms.amountMils)} would exceed your monthly limit. Raise the limit, or add credit yourself.</p>`}`;
}

function openNotice({ at, mils }: NonNullable<AutoTopup["open"]>): Html {
  return html`<p class="notice">Stripe has not confirmed the payment of ${amount(mils)} on ${momentOf(at)} yet. Its credit is added once Stripe does. Until then we begin no other payment.</p>
`;
}

function failureNotice({ at, mils, reason, retryAt }: LastFailure): Html {
  return html`<p class="notice warning"><strong>The payment of ${amount(mils)} on ${momentOf(at)} failed, and nothing was charged.</strong> ${pauseMessages[reason]} If the balance is still low, we try the card again after ${momentOf(retryAt)}.</p>`;
}

function firstCard(organizationId: string): Html {
  return html`<form class="form" method="post" action="/billing/auto-topup/card">${organizationField(organizationId)}
<button>Save a card</button>
<p class="aside">You enter the card on Stripe’s page. Nothing is charged, and automatic top-up stays off until you switch it on here.</p></form>`;
}

function cardLine({ brand, last4, expires }: SavedCard, organizationId: string): Html {
  const consequence = "Automatic top-up is switched off, and Stripe deletes the card.";
  return html`<div class="saved-card"><p><strong>${brand.charAt(0).toUpperCase()}${brand.slice(1)} ···· ${last4}</strong> <span class="aside">expires ${expires}</span></p>
<div class="row">
${buttonForm("/billing/auto-topup/card", "Save another card", { organizationId })}
</div>
${removalForm("/billing/auto-topup/card/remove", "Remove the card", { organizationId, consequence })}</div>`;
}

function termsForm({ organizationId, autoTopup, offeredMils, sent }: Shown): Html {
  const terms = autoTopup?.terms;
  const isActive = autoTopup?.isOn === true && !autoTopup.paused;
  const options = amountOptions(choices(offeredMils, terms));
  const value = terms && String(terms.amountMils);
  const field = (name: string, label: string, mils: number | undefined) =>
    dollarsField(sent, { name, label, hint: "In dollars.", mils, isRequired: true });
  return html`<form class="form" method="post" action="/billing/auto-topup">
${organizationField(organizationId)}<input type="hidden" name="was" value="${sent.values.get("was") ?? stateOf(autoTopup)}">
<div class="fields">${field("threshold", "When the balance falls below", terms?.thresholdMils)}
${selectField(sent, { name: "mils", label: "Add", hint: "Each time.", options, value })}
${field("ceiling", "Monthly limit (UTC)", terms?.ceilingMils)}</div>
<p class="aside">You allow us to charge this card without asking each time, until you switch it off. Automatic payments are at least a minute apart, so choose an amount that lasts longer. Payments that you make yourself do not count towards the monthly limit.</p>
<div class="row"><button>${isActive ? "Save changes" : "Switch on"}</button>
${autoTopup?.isOn === true && html`<button class="plain" form="switch-off">Switch off</button>`}</div>
</form>
${autoTopup?.isOn === true && html`<form id="switch-off" hidden method="post" action="/billing/auto-topup/off">${organizationField(organizationId)}</form>`}`;
}

/** The amounts on offer, and the payer's own, which may no longer be. */
function choices(offeredMils: readonly number[], terms: AutoTopupTerms | undefined): number[] {
  return [...new Set([...offeredMils, ...(terms ? [terms.amountMils] : [])])].toSorted((a, b) => a - b);
}

/** Messages for the address that a form leads back to. */
const done = {
  on: "Automatic top-up is on.",
  off: "Automatic top-up is off. Your card is still saved.",
  card_removed: "Card removed, and automatic top-up is off.",
  card_cancelled: "No card was saved.",
  no_card: "Save a card first. Nothing was changed.",
  changed_meanwhile: "Automatic top-up was changed or switched off in the meantime. Nothing was changed.",
};
const messages = new Map<unknown, string>(Object.entries(done));

/** The message for the address that a form or Stripe's page led back to. Only Stripe's webhook proves that a card was saved. */
function messageOf(
  { done: what, replaces }: Record<string, unknown>,
  autoTopup: AutoTopup | undefined,
): string | undefined {
  if (what !== "card_saved") return messages.get(what);
  const isSaved = autoTopup?.card !== undefined && autoTopup.card.paymentMethodId !== replaces;
  return isSaved ? "Card saved." : "Stripe has not confirmed your card yet. Reload the page in a few seconds.";
}

/** Why automatic top-up is paused, and what the payer can do. */
const pauseMessages: Record<FailureReason, string> = {
  card_declined: "The bank declined your card. Ask your bank, or save another card.",
  insufficient_funds: "Your card has insufficient funds. Try again later, or save another card.",
  expired_card: "Your card has expired. Save another card.",
  authentication_required:
    "Your bank requires you to confirm each payment, so we cannot charge this card automatically. Save another card, or add credit yourself.",
  card_unusable: "Stripe no longer has your card. Save it again.",
  refused: "Stripe refused the payment. The operator of this service can tell you more.",
  refunded:
    "The last payment was refunded before its credit was added. Settle it with the operator of this service before you switch on again.",
  payments_unavailable:
    "Stripe did not answer for hours. If the last payment went through, its credit is added once Stripe answers.",
  disputed:
    "A charge to your card was disputed at the bank. Settle it with the operator of this service before you switch on again.",
};

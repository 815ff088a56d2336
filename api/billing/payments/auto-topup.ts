import type { AutoTopup, AutoTopupTerms, FailureReason, LastFailure, SavedCard } from "../../auto-topups/auto-topup.ts";
import { organizationField } from "../frame/account-frame.ts";
import { amountChoices } from "./add-credit.ts";
import { problemOf, type SentForm, textField } from "../../pages/form.ts";
import { amount, dollars, momentOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** Where the forms of this section go. */
export const autoTopupPaths = {
  set: "/billing/auto-topup",
  off: "/billing/auto-topup/off",
  card: "/billing/auto-topup/card",
  removeCard: "/billing/auto-topup/card/remove",
};

interface Shown {
  organizationId: string;
  /** Undefined for a payer who never began to save a card. */
  autoTopup: AutoTopup | undefined;
  /** The amounts on offer. */
  offeredMils: readonly number[];
  sent: SentForm;
}

/** Automatic top-up: the saved card, when and how much, and whether it is on. */
export function autoTopupSection(shown: Shown): Html {
  const { organizationId, autoTopup } = shown;
  return html`<section id="auto-topup" class="setting" aria-labelledby="auto-topup-title">
<div class="intro"><h2 id="auto-topup-title">Automatic top-up ${tag(autoTopup)}</h2>
<p class="aside">While it is on, your card is charged by itself when the balance falls below an amount that you set.</p></div>
<div class="settings">${state(autoTopup)}
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
    return html`<div class="notice warning"><p><strong>Paused since ${momentOf(paused.at)}.</strong> ${pauseMessages[paused.reason]} Nothing is charged meanwhile.</p></div>`;
  const isFull = monthMils + terms.amountMils > terms.ceilingMils;
  return html`${lastFailure && failureNotice(lastFailure)}
<p>When the balance falls below ${amount(terms.thresholdMils)}, your card is charged ${amount(terms.amountMils)}. This month: ${amount(monthMils)} of at most ${amount(terms.ceilingMils)}.</p>
${isFull && html`<p class="notice warning">This month has no room for another ${amount(terms.amountMils)}. Raise the ceiling, or add credit by hand.</p>`}`;
}

function failureNotice({ at, mils, reason, retryAt }: LastFailure): Html {
  return html`<p class="notice warning"><strong>The payment of ${amount(mils)} on ${momentOf(at)} was not made, and nothing was charged.</strong> ${pauseMessages[reason]} If the balance is still low, the card is tried again after ${momentOf(retryAt)}.</p>`;
}

function firstCard(organizationId: string): Html {
  return html`<form class="form" method="post" action="${autoTopupPaths.card}">${organizationField(organizationId)}
<button>Save a card</button>
<p class="aside">You enter it on Stripe’s page. Nothing is charged, and automatic top-up stays off until you switch it on here.</p></form>`;
}

function cardLine({ brand, last4, expires }: SavedCard, organizationId: string): Html {
  return html`<div class="saved-card"><p><strong>${brand.charAt(0).toUpperCase()}${brand.slice(1)} ···· ${last4}</strong> <span class="aside">expires ${expires}</span></p>
<div class="row">
<form method="post" action="${autoTopupPaths.card}">${organizationField(organizationId)}<button class="plain">Save another card</button></form>
<form method="post" action="${autoTopupPaths.removeCard}">${organizationField(organizationId)}<button class="danger">Remove the card</button></form>
</div></div>`;
}

function termsForm({ organizationId, autoTopup, offeredMils, sent }: Shown): Html {
  const terms = autoTopup?.terms;
  const isActive = autoTopup?.isOn === true && !autoTopup.paused;
  const chosenMils = Number(sent.values.get("mils") ?? terms?.amountMils ?? offeredMils[0]);
  const inDollars = (mils: number | undefined) => (mils === undefined ? "" : dollars(mils).slice(1));
  const field = (name: string, label: string, mils: number | undefined) =>
    textField(sent, {
      name,
      label,
      hint: "In dollars.",
      value: inDollars(mils),
      attributes: html` inputmode="decimal" size="12" required`,
    });
  return html`<form class="form" method="post" action="${autoTopupPaths.set}">
${organizationField(organizationId)}
<div class="terms">${field("threshold", "When the balance falls below", terms?.thresholdMils)}
<div class="top-up">${amountChoices("Add", choices(offeredMils, terms), chosenMils, "Each time.")}
${problemOf(sent.problems, "mils")}</div>
${field("ceiling", "At most a calendar month (UTC)", terms?.ceilingMils)}</div>
<p class="aside">You allow us to charge this card without asking each time, until you switch it off. What you pay by hand does not count towards the ceiling.</p>
<div class="row"><button>${isActive ? "Save changes" : "Switch on"}</button>
${autoTopup?.isOn === true && html`<button class="plain" form="switch-off">Switch off</button>`}</div>
</form>
${autoTopup?.isOn === true && html`<form id="switch-off" hidden method="post" action="${autoTopupPaths.off}">${organizationField(organizationId)}</form>`}`;
}

/** The amounts on offer, and the one that the payer chose while it was. */
export function choices(offeredMils: readonly number[], terms: AutoTopupTerms | undefined): number[] {
  return [...new Set([...offeredMils, ...(terms ? [terms.amountMils] : [])])].toSorted((a, b) => a - b);
}

/** What the page says about automatic top-ups. */

const done = {
  on: "Automatic top-up is on.",
  off: "Automatic top-up is off. Your card is still saved.",
  card_removed: "Your card is removed, and automatic top-up is off.",
  card_cancelled: "No card was saved.",
  no_card: "Save a card first. Nothing was changed.",
};
const messages = new Map<unknown, string>(Object.entries(done));

/** What a form leads back with. */
export type Done = keyof typeof done;

/** The message for the address that a form or Stripe's page led back to. Only Stripe's webhook proves that a card was saved. */
export function messageOf(what: unknown, autoTopup: AutoTopup | undefined): string | undefined {
  if (what !== "card_saved") return messages.get(what);
  return autoTopup?.card
    ? "Your card is saved."
    : "Stripe has not confirmed your card yet. It appears here within some seconds: load the page again.";
}

/** Why automatic top-ups are paused, and what the payer can do. */
const pauseMessages: Record<FailureReason, string> = {
  card_declined: "The bank declined your card. Ask your bank, or save another card.",
  insufficient_funds: "Your card has too little money. Try again later, or save another card.",
  expired_card: "Your card has expired. Save another card.",
  authentication_required:
    "The bank wants you to confirm each payment, so this card cannot be charged without you. Save another card, or add credit by hand.",
  card_unusable: "Stripe does not have your card any more. Save it again.",
  refused: "Stripe refused the payment. The operator of this service can tell you more.",
  payments_unavailable:
    "Stripe gave no answer for hours. If the last payment was made after all, its credit is added once Stripe answers.",
};

import { type AutoTopupTerms, readAutoTopup } from "../../../shared/auto-topups/auto-topup.ts";
import { removeCard, switchOff, switchOn } from "../../../shared/auto-topups/recorded-changes.ts";
import type { FieldProblems } from "../../pages/form-fields.ts";
import { parseDollars } from "../../pages/parse-dollars.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { AutoTopups } from "../../topups/auto-topups.ts";
import type { Topups } from "../../topups/topups.ts";
import type { FormRequest } from "../frame/account-handlers.ts";
import { changeAccount } from "../frame/account-change.ts";
import type { Done } from "./auto-topup-messages.ts";
import { autoTopupPaths, choices } from "./auto-topup-section.ts";
import { type PaymentParts, paymentsView } from "./payments.ts";

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

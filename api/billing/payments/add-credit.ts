import { organizationField } from "../frame/account-frame.ts";
import { type FormRequest, leadTo } from "../frame/account-handlers.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { type Option, optionList } from "../../pages/form.ts";
import { dollars } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import type { Topups } from "../../topups/topups.ts";

/** How credit can be added: by paying one of these amounts, at another address, or by asking the operator. */
export type AddCredit = { amountsMils: readonly number[] } | { url: string } | "ask_operator";

/** The organization that gets the credit, as it is shown before a payment. */
interface Payee {
  name: string;
  organizationId: string;
}

export function addCreditSection(addCredit: AddCredit, payee: Payee): Html {
  return html`<section id="add-credit" aria-labelledby="add-credit-title">
<div class="head"><h2 id="add-credit-title">Add credit</h2></div>
${content(addCredit, payee)}
</section>`;
}

function content(addCredit: AddCredit, payee: Payee): Html {
  const { organizationId } = payee;
  if (addCredit === "ask_operator")
    return html`<p>To add credit, contact the operator of this service and give your organization ID: <code>${organizationId}</code></p>`;
  if ("url" in addCredit)
    return html`<p><a class="button" href="${addCredit.url}">Add credit</a> <span class="aside">for <code>${organizationId}</code></span></p>`;
  return paymentForm(addCredit.amountsMils, payee);
}

function paymentForm(amountsMils: readonly number[], { name, organizationId }: Payee): Html {
  // The second amount if there are several: the first is usually the smallest.
  const preselected = Math.min(1, amountsMils.length - 1);
  return html`<form class="top-up" method="post" action="/billing/topup">
${organizationField(organizationId)}
<label>Amount <select name="mils">${optionList(amountOptions(amountsMils), String(amountsMils[preselected]))}</select></label>
<button>Continue to payment</button>
<p class="aside">You pay on Stripe’s page, for <strong>${name}</strong> <code>${organizationId}</code>. 1,000 mils are 1 US dollar.</p>
</form>`;
}

/** The options of a field for one of these amounts. */
export const amountOptions = (amountsMils: readonly number[]): Option[] =>
  amountsMils.map((mils) => [String(mils), dollars(mils).replace(".000", "")]);

/** POST /billing/topup: redirects the browser to the payment page. The credit arrives with Stripe's webhook. */
export async function beginTopUp(
  { topups }: { topups: Topups },
  { response, caller, form, name }: FormRequest,
): Promise<void> {
  const { organizationId } = caller;
  const mils = Number(form.get("mils"));
  const { url } = await topups.begin({ organizationId, organizationName: name, mils, returnPath: "/billing" });
  requestScopeOf(response).logFields.outcome = "payment_begun";
  leadTo(response, url);
}

import { amount, dollars } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { organizationField } from "../frame/account-frame.ts";

/** A threshold that was not accepted: what the person wrote, and why. */
export interface LowBalanceField {
  text: string;
  problem: string;
}

/** The form for the balance below which the payer is notified. */
export function lowBalanceSection(shown: {
  organizationId: string;
  thresholdMils: number | null;
  field: LowBalanceField | undefined;
}): Html {
  const { organizationId, thresholdMils, field } = shown;
  const value = field?.text ?? (thresholdMils === null ? "" : dollars(thresholdMils).replace("$", ""));
  return html`<section id="low-balance-setting" class="setting" aria-labelledby="low-balance-title">
<div class="intro"><h2 id="low-balance-title">Low balance</h2>
<p class="aside">While the balance is below this amount, the overview says so. When it falls below, your webhook gets an event.</p></div>
<form method="post" action="/billing/settings/low-balance">
${organizationField(organizationId)}
<label for="threshold">Threshold in US dollars</label>
<div class="row"><input id="threshold" name="dollars" inputmode="decimal" autocomplete="off" value="${value}" aria-describedby="threshold-hint${field && " threshold-problem"}"${field && html` aria-invalid="true"`}>
<button>Save</button></div>
${field && html`<p id="threshold-problem" class="problem" role="alert">${field.problem}</p>`}
<p id="threshold-hint" class="aside">${!field && "Such as 5 or 7.50. Empty for none."}${thresholdMils !== null && html` Now: ${amount(thresholdMils)}.`}</p>
</form>
</section>`;
}

/** The banner of the overview while the balance is below the threshold; empty otherwise. */
export function lowBalanceBanner(balanceMils: number, thresholdMils: number | null): Html {
  if (thresholdMils === null || balanceMils >= thresholdMils) return html`<div id="low-balance"></div>`;
  return html`<div id="low-balance"><p class="notice warning">Your balance of ${amount(balanceMils)} is below your threshold of ${amount(thresholdMils)}. <a href="#add-credit">Add credit</a> or <a href="/billing/settings">change the threshold</a>.</p></div>`;
}

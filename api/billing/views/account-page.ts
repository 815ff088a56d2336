import type { Config } from "../../../shared/config.ts";
import type { Account } from "../reads/load-account.ts";
import { dollars } from "./format.ts";
import type { Billing } from "../billing.ts";
import { creditSection } from "./credit-section.ts";
import { historySection, queryOf } from "./history-section.ts";
import { html, type Html } from "./html.ts";
import { usageSection } from "./usage-section.ts";

/** What the address tells about the way here. */
export type ReturnFrom = "paid" | undefined;

/** The whole page of somebody who is signed in. Its parts have ids: live updates replace them one by one. */
export function accountPage(billing: Billing, account: Account, arrival: ReturnFrom): Html {
  const { credit, days, history, name } = account;
  return html`<header>
<a class="brand" href="/billing">Serpmill <span>Billing</span></a>
<p class="who"><strong>${name}</strong><code>${credit.caller.organizationId}</code></p>
<form method="post" action="/billing/sign-out"><button class="plain">Sign out</button></form>
</header>
<main data-live="/billing/live?${queryOf(history.view)}">
<div class="head"><h1>Billing</h1><p id="live" class="aside" role="status"></p></div>
${arrival === "paid" && html`<p class="notice">Payment received. The credit arrives in a moment.</p>`}
${creditSection(credit)}
${usageSection(days)}
${addCreditPart(billing, credit.caller.organizationId)}
${historySection(history)}
</main>`;
}

function addCreditPart({ context }: Billing, organizationId: string): Html {
  const { topups, config } = context;
  return html`<section id="add-credit" aria-labelledby="add-credit-title">
<div class="head"><h2 id="add-credit-title">Add credit</h2></div>
${topups ? topUpForm(topups.amountsMils) : askFor(config, organizationId)}
</section>`;
}

function topUpForm(amountsMils: readonly number[]): Html {
  // The second, since the first is often the least that is sold; where there is only one, that one.
  const preset = Math.min(1, amountsMils.length - 1);
  return html`<form class="top-up" method="post" action="/billing/topup">
<fieldset><legend>Amount</legend>
${amountsMils.map(
  (mils, at) =>
    html`<label><input type="radio" name="mils" value="${mils}" required${at === preset && html` checked`}><span>${dollars(mils).replace(".000", "")}</span></label>
`,
)}</fieldset>
<button>Continue to payment</button>
<p class="aside">You pay at Stripe. 1,000 mils are one US dollar.</p>
</form>`;
}

/** The page itself is where callers without credit are sent, unless the operator named another place. */
function askFor({ TOPUP_URL, PUBLIC_URL = "" }: Config, organizationId: string): Html {
  if (TOPUP_URL !== `${PUBLIC_URL}/billing`)
    return html`<p><a class="button" href="${TOPUP_URL}">Add credit</a> <span class="aside">for <code>${organizationId}</code></span></p>`;
  return html`<p>Ask the operator of this service for credit, and name your organization: <code>${organizationId}</code></p>`;
}

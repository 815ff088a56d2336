import { historyViewQuery } from "../reads/history-view.ts";
import type { Account } from "../reads/load-account.ts";
import { type AddCredit, addCreditSection } from "./add-credit-section.ts";
import { creditSection } from "./credit-section.ts";
import { historySection } from "./history-section.ts";
import { html, type Html } from "./html.ts";
import { usageSection } from "./usage-section.ts";

/**
 * The whole page of a signed-in person. Its sections have ids, by which live updates replace them.
 * @param options.payment how the person comes back from Stripe's page; the address says so, which proves nothing.
 */
export function accountPage(
  account: Account,
  addCredit: AddCredit,
  options: { payment: "paid" | "cancelled" | undefined },
): Html {
  const { credit, days, history, name } = account;
  return html`<header>
<a class="brand" href="/billing">Serpmill <span>Billing</span></a>
<p class="who"><strong>${name}</strong><code>${credit.caller.organizationId}</code></p>
<form method="post" action="/billing/sign-out"><button class="plain">Sign out</button></form>
</header>
<main data-live="/billing/live?${historyViewQuery(history.view)}">
<div class="head"><h1>Billing</h1><p id="live" class="aside" role="status"></p></div>
${options.payment === "paid" && html`<p class="notice">Stripe sent you back after the payment. The credit appears here once Stripe confirms it: within a minute for cards, within days for bank debits.</p>`}
${options.payment === "cancelled" && html`<p class="notice">You left Stripe’s page before the payment. No credit was added, and nothing was charged.</p>`}
${creditSection(credit)}
${usageSection(days)}
${addCreditSection(addCredit, { name, organizationId: credit.caller.organizationId })}
${historySection(history)}
</main>`;
}

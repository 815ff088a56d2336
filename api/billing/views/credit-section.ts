import type { Credit } from "../reads/load-account.ts";
import { count, dollars, mils, searches, timeOf } from "./format.ts";
import { html, type Html } from "./html.ts";

/** What there is to spend, and the terms it is spent on. */
export function creditSection(credit: Credit): Html {
  const { caller, availableMils, state } = credit;
  return html`<section id="credit" aria-labelledby="credit-title">
${notices(credit)}
<div class="cards">
<div class="card">
<h2 id="credit-title" class="name">Available</h2>
<p class="figure">${dollars(availableMils)}</p>
<p class="aside">${mils(availableMils)}</p>
<dl>
<div><dt>Balance</dt><dd>${dollars(state.balanceMils)}</dd></div>
<div><dt>Held now</dt><dd>${dollars(state.heldMils)} <span class="aside">for ${searches(state.searchesInFlight)}</span></dd></div>
</dl>
</div>
${planCard(credit)}
<div class="card">
<h2 class="name">Searches in flight</h2>
<p class="figure">${count(state.searchesInFlight)} <span class="of">of ${count(caller.plan.concurrency)}</span></p>
${meter(state.searchesInFlight, caller.plan.concurrency)}
<p class="aside">Their price is held, and charged when they are answered</p>
</div>
</div>
</section>`;
}

function planCard({ caller: { plan }, window, windowEndsAt }: Credit): Html {
  const left = Math.max(0, plan.windowLimit - window.used);
  return html`<div class="card">
<h2 class="name">Plan</h2>
<p class="figure plan">${plan.code}</p>
<p class="aside">${mils(plan.priceMils)} a search (${dollars(plan.priceMils)})</p>
<dl>
<div><dt>Requests left</dt><dd>${count(left)} of ${count(plan.windowLimit)}</dd></div>
</dl>
${meter(plan.windowLimit - left, plan.windowLimit)}
<p class="aside">${count(plan.windowSeconds)} s window, resets at <time datetime="${windowEndsAt.toISOString()}">${timeOf(windowEndsAt)}</time> UTC</p>
</div>`;
}

/** How much of something is used; the numbers beside it say the same. */
function meter(used: number, of: number): Html {
  const share = `${Math.min(100, Math.round((used / of) * 100))}%`;
  return html`<svg class="meter" aria-hidden="true"><rect class="whole" width="100%" height="100%" rx="3"></rect><rect class="used" width="${share}" height="100%" rx="3"></rect></svg>`;
}

function notices({ caller, availableMils, state }: Credit): Html | false {
  if (caller.suspended)
    return notice("The organization is suspended. Its searches are refused until the operator resumes it.");
  if (availableMils >= caller.plan.priceMils) return false;
  return notice(
    state.balanceMils >= caller.plan.priceMils
      ? "All credit is held by searches in flight. More are refused until some of them end."
      : "The credit does not pay for another search. Searches are refused until credit is added.",
  );
}

const notice = (says: string) => html`<p class="notice warning">${says}</p>`;

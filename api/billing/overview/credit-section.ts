import type { DayFigures } from "../../../shared/credits/days.ts";
import type { Plan } from "../../../shared/credits/plans.ts";
import { organicPerPage } from "../../../shared/query/depth.ts";
import type { Credit } from "../frame/account-reads.ts";
import { amount, count, searches, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { type Outlook, outlookOf } from "./outlook.ts";

const daysShownMax = 365;

/** The credit that is available, and the terms of the plan. */
export function creditSection(credit: Credit, week: readonly DayFigures[]): Html {
  const { caller, availableMils, state } = credit;
  return html`<section id="credit" aria-labelledby="credit-title">
${warning(credit)}
<div class="cards">
<div class="card">
<h2 id="credit-title" class="name">Available</h2>
<p class="figure">${amount(availableMils)}</p>
<p class="aside">${outlookText(outlookOf(week, availableMils))}</p>
<dl>
<div><dt>Balance</dt><dd>${amount(state.balanceMils)}</dd></div>
<div><dt>Held now</dt><dd>${amount(state.heldMils)} <span class="aside">for ${searches(state.searchesInFlight)}</span></dd></div>
</dl>
</div>
${planCard(credit)}
<div class="card">
<h2 class="name">Searches in flight</h2>
<p class="figure">${count(state.searchesInFlight)} <span class="of">of ${count(caller.plan.concurrency)}</span></p>
${meter(state.searchesInFlight, caller.plan.concurrency)}
<p class="aside">The price of a search is held while it runs, and charged once it is answered.</p>
</div>
</div>
</section>`;
}

function planCard({ caller: { plan }, window, windowEndsAt }: Credit): Html {
  const left = Math.max(0, plan.windowLimit - window.used);
  return html`<div class="card">
<h2 class="name">Plan ${plan.code}</h2>
<p class="figure">${amount(plan.priceMils)} <span class="of">per ${unitOf(plan)}</span></p>
${plan.maxDepth !== undefined && html`<p class="aside">At most ${count(plan.maxDepth)} results a search</p>`}
<dl>
<div><dt>Requests left</dt><dd>${count(left)} of ${count(plan.windowLimit)}</dd></div>
</dl>
${meter(plan.windowLimit - left, plan.windowLimit)}
<p class="aside">${count(plan.windowSeconds)} s window, resets at <time datetime="${windowEndsAt.toISOString()}">${timeOf(windowEndsAt)}</time> UTC</p>
</div>`;
}

/** How long the credit lasts; nothing while there is too little history. */
function outlookText(outlook: Outlook | undefined): Html | false {
  if (!outlook) return false;
  const { days, searches: left } = outlook;
  const time =
    days > daysShownMax ? "more than a year left" : `about ${count(days)} ${days === 1 ? "day" : "days"} left`;
  return html`<span title="At the pace of the last seven days">${time} at this pace, ≈ ${searches(left)}</span>`;
}

/** What the price is for. */
const unitOf = ({ pricePerPageMils }: Plan) =>
  pricePerPageMils === undefined ? "search" : `${organicPerPage} results`;

/** A bar for how much is used. It is hidden from screen readers, because the numbers next to it show the same. */
function meter(used: number, limit: number): Html {
  const share = `${Math.min(100, Math.round((used / limit) * 100))}%`;
  return html`<svg class="meter" aria-hidden="true"><rect class="whole" width="100%" height="100%" rx="3"></rect><rect class="used" width="${share}" height="100%" rx="3"></rect></svg>`;
}

function warning({ caller, availableMils, state }: Credit): Html | false {
  if (caller.suspended)
    return notice(
      "Your organization is suspended. Searches are refused until the operator of this service resumes it. " +
        "Contact the operator and give your organization ID.",
    );
  if (availableMils >= caller.plan.priceMils) return false;
  return notice(
    state.balanceMils >= caller.plan.priceMils
      ? "All your credit is held by searches in flight. New searches are refused until one of them ends."
      : "There is not enough credit for another search. Searches are refused until credit is added.",
  );
}

const notice = (text: string) => html`<p class="notice warning">${text}</p>`;

import type { DayFigures } from "../../ledger/days.ts";
import type { Plan } from "../../../shared/credits/plans.ts";
import { organicPerPage } from "../../../shared/query/depth.ts";
import type { Credit } from "../frame/account-reads.ts";
import { amount, count, searches, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

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

/** The banner of the overview while the balance is below the threshold; empty otherwise. */
export function lowBalanceBanner(balanceMils: number, thresholdMils: number | null): Html {
  if (thresholdMils === null || balanceMils >= thresholdMils) return html`<div id="low-balance"></div>`;
  return html`<div id="low-balance"><p class="notice warning">Your balance of ${amount(balanceMils)} is below your threshold of ${amount(thresholdMils)}. <a href="#add-credit">Add credit</a> or <a href="/billing/settings">change the threshold</a>.</p></div>`;
}

/** Days with a charge, of the seven before today, from which there is a pace. */
const busyDaysMin = 3;

/** How long credit lasts. */
interface Outlook {
  days: number;
  searches: number;
}

/**
 * How long the available mils last at the pace of the seven full days before today, by the organization's ledger: days = available
 * mils ÷ (mils charged − mils credited back, a day), searches = available mils ÷ (the same mils, a charged search that stayed).
 * Both are rounded down. Grants do not count, and neither does today, which is not over. A day without searches counts, so a
 * program that rests on Sundays is not taken for a faster one; days before the first charge of the week do not.
 * @param week eight days, the last one today.
 * @returns undefined with fewer than three days with a charge, or if nothing stayed charged.
 */
export function outlookOf(week: readonly DayFigures[], availableMils: number): Outlook | undefined {
  const before = week.slice(0, -1);
  if (before.filter(({ charges }) => charges > 0).length < busyDaysMin) return undefined;
  const counted = before.slice(before.findIndex(({ charges }) => charges > 0));
  const total = (of: (day: DayFigures) => number) => counted.reduce((sum, day) => sum + of(day), 0);
  const netMils = total(({ chargedMils, reversedMils }) => chargedMils - reversedMils);
  const kept = total(({ charges, reversals }) => charges - reversals);
  if (netMils <= 0 || kept <= 0) return undefined;
  return {
    days: Math.floor((availableMils * counted.length) / netMils),
    searches: Math.floor((availableMils * kept) / netMils),
  };
}

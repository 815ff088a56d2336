import type { AccountView } from "../frame/account-frame.ts";
import type { AccountReads, Activity, Credit } from "../frame/account-reads.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import type { LiveSections } from "../frame/live-updates.ts";
import { html, type Html } from "../../pages/html.ts";
import { type AddCredit, addCreditSection } from "./add-credit-section.ts";
import { creditSection } from "./credit-section.ts";
import { lowBalanceBanner } from "../settings/low-balance-section.ts";
import { latestSection } from "./latest-section.ts";
import { usageSection } from "./usage-section.ts";

/** GET /billing: the summary of the account. */
export function writeOverview({ reads, addCredit }: { reads: AccountReads; addCredit: AddCredit }) {
  return async ({ request, caller, name }: PageRequest): Promise<AccountView> => {
    const credit = await reads.readCredit(caller);
    const activity = await reads.readActivity(caller.organizationId);
    return {
      path: "/billing",
      title: "Overview",
      live: "/billing/live",
      body: html`${returnNotice(request.query["topup"])}
${lowBalanceBanner(credit.state.balanceMils, activity.thresholdMils)}
${creditSection(credit)}
${usageSection(activity.days)}
${latestSection(activity.latest)}
${addCreditSection(addCredit, { name, organizationId: caller.organizationId })}`,
    };
  };
}

/** How the person comes back from Stripe's page. The address says so, which proves nothing. */
function returnNotice(topup: unknown): Html | false {
  if (topup === "paid")
    return html`<p class="notice">Stripe sent you back after the payment. The credit appears here once Stripe confirms it: within a minute for cards, within days for bank debits.</p>`;
  return (
    topup === "cancelled" &&
    html`<p class="notice">You left Stripe’s page before the payment. No credit was added, and nothing was charged.</p>`
  );
}

/** GET /billing/live: the sections of the overview that change. */
export function liveOverview(reads: AccountReads): LiveSections {
  return {
    ofCredit: (credit) => [{ id: "credit", html: creditSection(credit) }],
    ofLedger: async (credit: Credit) => ofActivity(credit, await reads.readActivity(credit.caller.organizationId)),
  };
}

const ofActivity = ({ state }: Credit, { days, latest, thresholdMils }: Activity) => [
  { id: "low-balance", html: lowBalanceBanner(state.balanceMils, thresholdMils) },
  { id: "usage", html: usageSection(days) },
  { id: "latest", html: latestSection(latest) },
];

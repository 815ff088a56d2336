import type { Request } from "express";
import type { HistoryEntry } from "../../ledger/history.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import { type AccountReads, type Activity, latestShown } from "../frame/account-reads.ts";
import type { LiveSections } from "../frame/live-updates.ts";
import { creditSection, lowBalanceBanner } from "./credit-section.ts";
import { usageForm, usageSection } from "./usage-section.ts";
import { isReadOnce, readUsageView, type UsageView, usageViewQuery } from "./usage-view.ts";
import { type AddCredit, addCreditSection } from "../payments/add-credit.ts";
import { historyTable } from "../searches/history-table.ts";
import { html, type Html } from "../../pages/html.ts";

/** GET /billing: the summary of the account. */
export function writeOverview(parts: { reads: AccountReads; addCredit: AddCredit; publicUrl: string | undefined }) {
  const { reads, addCredit, publicUrl } = parts;
  return async ({ request, caller, name }: PageRequest): Promise<AccountView> => {
    const credit = await reads.readCredit(caller);
    const view = readUsageView(request);
    const tokens = await reads.listTokens(caller.organizationId);
    if (view.tokenId !== undefined && !tokens.some(({ tokenId }) => tokenId === view.tokenId))
      throw new CallerError("not_found");
    const activity = await reads.readActivity(caller.organizationId, view);
    const back = readReturn(request);
    const usage = html`<section class="panel usage" aria-labelledby="usage-title">
<div class="head"><h2 id="usage-title">Usage</h2>${usageForm(view, tokens)}</div>
${usageSection(activity.chart, view)}
</section>`;
    const latest = latestSection(activity.latest, apiUrlOf(request, publicUrl));
    return {
      path: "/billing",
      title: "Overview",
      live: `/billing/live?${usageViewQuery(view)}${back.paymentId === undefined ? "" : `&topup=paid&payment=${back.paymentId}`}`,
      body: html`${await returnNotice(reads, caller.organizationId, back)}
${lowBalanceBanner(credit.state.balanceMils, activity.thresholdMils)}
${creditSection(credit, activity.week)}
${isNew(activity.latest) ? [latest, usage] : [usage, latest]}
${addCreditSection(addCredit, { name, organizationId: caller.organizationId })}`,
    };
  };
}

/** How a person comes back from Stripe's page, and from which payment. The address says so, which proves nothing. */
interface Return {
  topup: unknown;
  paymentId: string | undefined;
}

function readReturn({ query: { topup, payment } }: Request): Return {
  const isPayment = topup === "paid" && typeof payment === "string" && /^cs_\w{1,250}$/.test(payment);
  return { topup, paymentId: isPayment ? payment : undefined };
}

async function returnNotice(
  reads: AccountReads,
  organizationId: string,
  { topup, paymentId }: Return,
): Promise<Html | false> {
  if (topup === "cancelled")
    return html`<p class="notice">You left Stripe’s page before the payment. No credit was added, and nothing was charged.</p>`;
  if (topup !== "paid") return false;
  const isCredited = paymentId !== undefined && (await reads.isCredited(organizationId, paymentId));
  const text = isCredited
    ? html`Your payment has arrived, and its credit is in your balance. <a href="/billing/payments">Payments</a> has the receipt.`
    : "Stripe sent you back after the payment. The credit appears here once Stripe confirms it: within a minute for cards, within days for bank debits.";
  return html`<div id="returned"><p class="notice" role="status">${text}</p></div>`;
}

/** The address by which callers reach this API, for the line that they copy. */
const apiUrlOf = ({ protocol, headers }: Request, publicUrl: string | undefined) =>
  publicUrl ?? `${protocol}://${headers.host ?? "localhost"}`;

/** GET /billing/live: the sections of the overview that change. */
export function liveOverview(reads: AccountReads, publicUrl: string | undefined) {
  return (request: Request): LiveSections => {
    const view = readUsageView(request);
    const isStill = isReadOnce(view);
    const back = readReturn(request);
    let week: Activity["week"] = [];
    return {
      ofLedger: async ({ caller, state }) => {
        const shown: UsageView = isStill ? { measure: "searches", range: view.range, tokenId: undefined } : view;
        const activity = await reads.readActivity(caller.organizationId, shown);
        week = activity.week;
        const returned = back.paymentId !== undefined && (await returnNotice(reads, caller.organizationId, back));
        return [
          ...(returned ? [{ id: "returned", html: returned }] : []),
          { id: "low-balance", html: lowBalanceBanner(state.balanceMils, activity.thresholdMils) },
          ...(isStill ? [] : [{ id: "usage", html: usageSection(activity.chart, view) }]),
          { id: "latest", html: latestSection(activity.latest, apiUrlOf(request, publicUrl)) },
        ];
      },
      ofCredit: (credit) => [{ id: "credit", html: creditSection(credit, week) }],
    };
  };
}

/** The newest entries of the history, or before the first search how to make it. @param apiUrl the address of this API. */
function latestSection(entries: readonly HistoryEntry[], apiUrl: string): Html {
  return html`<section id="latest" aria-labelledby="latest-title">
${isNew(entries) ? firstSearch(apiUrl) : html`<div class="head"><h2 id="latest-title">Latest</h2><a class="button" href="/billing/searches">All searches</a></div>`}
${entries.length > 0 && historyTable(entries)}
</section>`;
}

/** Whether the newest entries are all there are, and none is of a search. */
const isNew = (entries: readonly HistoryEntry[]) =>
  entries.length < latestShown && entries.every(({ outcome }) => outcome === "granted" || outcome === "corrected");

/** The token is read into a variable, so that no shell keeps it in its history. */
function firstSearch(apiUrl: string): Html {
  return html`<div class="card first">
<h2 id="latest-title">Make your first search</h2>
<ol>
<li>Put a token into a variable. This line asks for it without showing it:
<pre tabindex="0" aria-label="Command that asks for the token"><code class="all">read -rs SERPMILL_TOKEN</code></pre></li>
<li>Search:
<div class="snippet"><pre tabindex="0" aria-label="Command that searches"><code class="all" id="first-curl">curl ${apiUrl}/v1/serp/search \\
  -H "Authorization: Bearer $SERPMILL_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '{"keyword":"coffee"}'</code></pre>
<button type="button" class="plain" data-copy="first-curl" hidden>Copy</button></div></li>
</ol>
<p class="aside">The result appears here at once. The <a href="/docs">reference</a> has every field. <a href="/billing/tokens">Tokens</a> for programs need only the scope <code>search</code>.</p>
</div>`;
}

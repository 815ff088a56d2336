import type { Request, Response } from "express";
import type { Plan } from "../../../shared/credits/plans.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { organicPerPage } from "../../../shared/query/depth.ts";
import { readThreshold } from "../../../shared/webhooks/low-balance.ts";
import { type DayFigures, readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import { type Outlook, outlookOf, type Pace, readPaceDays } from "../../../shared/credits/outlook.ts";
import type { SearchEntry } from "../../ledger/find-searches.ts";
import { readHistory } from "../../ledger/history.ts";
import { readTokenChoice } from "../../tokens/account-tokens.ts";
import { isTopupOf } from "../../ledger/ledger-pages.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import type { LiveSections } from "../frame/live-updates.ts";
import type { AccountCredit, ReadCredit } from "../../read-usage.ts";
import {
  type Chart,
  isReadOnce,
  periodsOf,
  readChart,
  readUsageView,
  usageForm,
  usageSection,
  type UsageView,
  usageViewQuery,
} from "./usage.ts";
import { type AddCredit, addCreditSection } from "../payments/add-credit.ts";
import { historyTable, type LongReads, withSearches } from "../searches/history.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { amount, count, dateOf, searches, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { highlighted, searchCode } from "../../search-samples.ts";

const latestMax = 6;

interface OverviewParts {
  database: Database;
  readCredit: ReadCredit;
  longReads: LongReads;
  /** The days of the search log; 0 for none. */
  searchLogDays: number;
}

/** GET /billing: the summary of the account. */
export async function writeOverview(
  parts: OverviewParts & { addCredit: AddCredit },
  { request, response, caller, name }: PageRequest,
): Promise<AccountView> {
  const { database, readCredit, addCredit } = parts;
  const { organizationId } = caller;
  const credit = await readCredit(caller);
  const view = readUsageView(request);
  const tokens = await readTokenChoice(database, organizationId, view.tokenId);
  if (view.tokenId !== undefined && !tokens.some(({ tokenId }) => tokenId === view.tokenId))
    throw new CallerError("not_found");
  const activity = await readActivity(parts, organizationId, view);
  const back = readReturn(request);
  const usage = html`<section class="panel" aria-labelledby="usage-title">
<div class="head"><h2 id="usage-title">Usage</h2>${usageForm(view, tokens)}</div>
${usageSection(activity.chart, view)}
</section>`;
  const latest = latestSection(activity.latest, requestScopeOf(response).origin);
  const add = addCreditSection(addCredit, { name, organizationId });
  const content = isNew(activity.latest) ? [latest, usage] : [usage, latest];
  // Without credit for a search, credit is the next step.
  const isShort = credit.availableMils < caller.plan.priceMils && !caller.suspended;
  return {
    path: "/billing",
    title: "Overview",
    live: `/billing/live?${usageViewQuery(view)}${back.paymentId === undefined ? "" : `&topup=paid&payment=${back.paymentId}`}`,
    body: html`${await returnNotice(database, organizationId, back)}
${lowBalanceBanner(credit.state.balanceMils, activity.thresholdMils)}
${creditSection(credit, activity.week)}
${isShort ? [add, ...content] : [...content, add]}`,
  };
}

/** GET /billing/live: the sections of the overview that change. */
export function liveOverview(parts: OverviewParts) {
  return (request: Request, response: Response): LiveSections => {
    const view = readUsageView(request);
    const isStill = isReadOnce(view);
    const back = readReturn(request);
    let week: DayFigures[] = [];
    return {
      ofLedger: async ({ caller: { organizationId }, state }) => {
        const shown: UsageView = isStill ? { measure: "searches", range: view.range, tokenId: undefined } : view;
        const activity = await readActivity(parts, organizationId, shown);
        week = activity.week;
        const returned = back.paymentId !== undefined && (await returnNotice(parts.database, organizationId, back));
        return [
          ...(returned ? [{ id: "returned", html: returned }] : []),
          { id: "low-balance", html: lowBalanceBanner(state.balanceMils, activity.thresholdMils) },
          ...(isStill ? [] : [{ id: "usage", html: usageSection(activity.chart, view) }]),
          { id: "latest", html: latestSection(activity.latest, requestScopeOf(response).origin) },
        ];
      },
      ofCredit: (credit) => [{ id: "credit", html: creditSection(credit, week) }],
    };
  };
}

/** What an organization did of late. All of it is read before any of it is written. */
interface Activity {
  chart: Chart;
  /** The last seven times 24 hours. */
  week: DayFigures[];
  latest: SearchEntry[];
  /** The balance below which the payer is notified; null for none. */
  thresholdMils: number | null;
}

async function readActivity(
  { database, longReads, searchLogDays: keptDays }: OverviewParts,
  organizationId: string,
  view: UsageView,
): Promise<Activity> {
  const now = new Date();
  const { unit, length } = periodsOf(view, now);
  const newest = readHistory(database, organizationId, { filter: "all", before: undefined, limit: latestMax });
  const searched = newest.then(({ entries }) => withSearches(database, organizationId, entries));
  const days = readLedgerDays(database, organizationId, { days: length, unit });
  const draw = async () => readChart(database, organizationId, { view, days: await days, keptDays });
  const [chart, week, latest, thresholdMils] = await Promise.all([
    isReadOnce(view) ? longReads.run(draw, organizationId) : draw(),
    readPaceDays(database, organizationId, now),
    searched,
    readThreshold(database, organizationId),
  ]);
  return { chart, week, latest, thresholdMils };
}

/** How a person returned from Stripe's page, and from which payment, as the address says. That proves nothing. */
interface Return {
  topup: unknown;
  paymentId: string | undefined;
}

function readReturn({ query: { topup, payment } }: Request): Return {
  const isPayment = topup === "paid" && typeof payment === "string" && /^cs_\w{1,250}$/.test(payment);
  return { topup, paymentId: isPayment ? payment : undefined };
}

async function returnNotice(
  database: Database,
  organizationId: string,
  { topup, paymentId }: Return,
): Promise<Html | false> {
  if (topup === "cancelled")
    return html`<p class="notice">You left Stripe’s page before the payment. Nothing was charged, and no credit was added.</p>`;
  if (topup !== "paid") return false;
  const isCredited = paymentId !== undefined && (await isTopupOf(database, organizationId, paymentId));
  const text = isCredited
    ? html`Your payment has arrived, and its credit is in your balance. <a href="/billing/payments">Payments</a> has the receipt.`
    : "Stripe sent you back after the payment. The credit appears here once Stripe confirms it: within a minute for cards, within days for bank debits.";
  return html`<div id="returned"><p class="notice" role="status">${text}</p></div>`;
}

/** The newest entries of the history; before the first search, how to make it. */
function latestSection(entries: readonly SearchEntry[], apiUrl: string): Html {
  return html`<section id="latest" aria-labelledby="latest-title">
${isNew(entries) ? firstSearch(apiUrl) : html`<div class="head"><h2 id="latest-title">Latest</h2><a class="button" href="/billing/searches">All searches</a></div>`}
${entries.length > 0 && historyTable(entries)}
</section>`;
}

/** Whether the organization has not searched yet. */
const isNew = (entries: readonly SearchEntry[]) =>
  entries.length < latestMax && entries.every(({ outcome }) => outcome === "granted" || outcome === "corrected");

/** The command reads the token into a variable, so that no shell keeps it in its history. */
function firstSearch(apiUrl: string): Html {
  return html`<div class="card first">
<h2 id="latest-title">Make your first search</h2>
<ol>
<li>Store a token in a variable. The command prompts for it without showing it:
<pre tabindex="0" aria-label="Command that asks for the token"><code class="all">read -rs SERPMILL_TOKEN</code></pre></li>
<li>Search:
<div class="snippet"><pre tabindex="0" aria-label="Command that searches"><code class="all" id="first-curl">${highlighted(searchCode("curl", apiUrl, { keyword: "coffee" }))}</code></pre>
<button type="button" class="plain" data-copy="first-curl" hidden>Copy</button></div></li>
</ol>
<p class="aside">The search appears here immediately. The <a href="/docs">reference</a> describes every field. <a href="/billing/tokens">Tokens</a> for programs only need the scope <code>search</code>.</p>
</div>`;
}

/** The available credit, the plan, and the searches in flight. */
function creditSection(credit: AccountCredit, week: readonly DayFigures[]): Html {
  const { caller, availableMils, state } = credit;
  const outlook = outlookOf(week, state.balanceMils, new Date());
  return html`<section id="credit" aria-labelledby="credit-title">
${warning(credit)}
${spikeBanner(outlook)}
<div class="cards">
<div class="card">
<h2 id="credit-title" class="name">Available</h2>
<p class="figure">${amount(availableMils)}</p>
${outlook && availableMils >= caller.plan.priceMils && endText(outlook)}
<dl>
<div><dt>Balance</dt><dd>${amount(state.balanceMils)}</dd></div>
<div><dt>On hold</dt><dd>${amount(state.heldMils)} <span class="aside">for ${searches(state.searchesInFlight)}</span></dd></div>
${outlook && [pace("Last 24 hours", outlook.day, ""), pace("Last 7 days", outlook.week, " a day")]}
</dl>
</div>
${planCard(credit)}
<div class="card">
<h2 class="name">Searches in flight</h2>
<p class="figure">${count(state.searchesInFlight)} <span class="of">of ${count(caller.plan.concurrency)}</span></p>
${meter(state.searchesInFlight, caller.plan.concurrency)}
<p class="aside">The price of a search is held while it runs, and charged when it is answered.</p>
</div>
</div>
</section>`;
}

function planCard({ caller: { plan }, window, windowEndsAt }: AccountCredit): Html {
  const left = Math.max(0, plan.windowLimit - window.used);
  return html`<div class="card">
<h2 class="name">Plan ${plan.code}</h2>
<p class="figure">${amount(plan.priceMils)} <span class="of">per ${unitOf(plan)}</span></p>
${plan.maxDepth !== undefined && html`<p class="aside">At most ${count(plan.maxDepth)} results per search</p>`}
<dl>
<div><dt>Requests left</dt><dd>${count(left)} of ${count(plan.windowLimit)}</dd></div>
</dl>
${meter(plan.windowLimit - left, plan.windowLimit)}
<p class="aside">${count(plan.windowSeconds)} s window, resets at <time datetime="${windowEndsAt.toISOString()}">${timeOf(windowEndsAt)}</time> UTC</p>
</div>`;
}

function endText({ endsOn, searches: left }: Outlook): Html {
  const end = endsOn
    ? html`until about <time datetime="${endsOn}">${dateOf(new Date(endsOn))}</time>`
    : "for more than ten years";
  return html`<p class="aside" title="At the faster pace of the last 24 hours or the last 7 days">Lasts ${end}, ≈ ${searches(left)}</p>`;
}

const pace = (name: string, { searches: paid, mils }: Pace, unit: string): Html =>
  html`<div><dt>${name}</dt><dd>${searches(rounded(paid))}${unit} <span class="aside">for ${amount(Math.round(mils))}</span></dd></div>
`;

/** A mean of searches: whole from ten on, else with one decimal. */
const rounded = (mean: number) => (mean < 10 ? Math.round(mean * 10) / 10 : Math.round(mean));

function spikeBanner(outlook: Outlook | undefined): Html | false {
  if (outlook?.spikeOver === undefined) return false;
  const { day, spikeOver } = outlook;
  return html`<p class="notice warning">${searches(day.searches)} were charged in the last 24 hours, instead of about ${count(rounded(spikeOver))} a day in the six days before. <a href="/billing/tokens">Tokens</a> shows which token made them, and <a href="/billing/settings">a limit</a> stops them.</p>`;
}

const unitOf = ({ pricePerPageMils }: Plan) =>
  pricePerPageMils === undefined ? "search" : `${organicPerPage} results`;

/** A bar of the used share. It is hidden from screen readers, because the numbers beside it say the same. */
function meter(used: number, limit: number): Html {
  const share = `${Math.min(100, Math.round((used / limit) * 100))}%`;
  return html`<svg class="meter" aria-hidden="true"><rect class="whole" width="100%" height="100%" rx="3"></rect><rect class="used" width="${share}" height="100%" rx="3"></rect></svg>`;
}

function warning({ caller, availableMils, state }: AccountCredit): Html | false {
  if (caller.suspended)
    return notice(
      "Your organization is suspended. Searches are refused until the operator of this service resumes it. " +
        "Contact the operator and give your organization ID.",
    );
  if (availableMils >= caller.plan.priceMils) return false;
  return notice(
    state.balanceMils >= caller.plan.priceMils
      ? "Searches in flight hold all your credit. New searches are refused until one of them ends."
      : "There is not enough credit for another search. Searches are refused until you add credit.",
  );
}

const notice = (text: string) => html`<p class="notice warning">${text}</p>`;

/** The banner while the balance is below the threshold; empty otherwise. */
function lowBalanceBanner(balanceMils: number, thresholdMils: number | null): Html {
  if (thresholdMils === null || balanceMils >= thresholdMils) return html`<div id="low-balance"></div>`;
  return html`<div id="low-balance"><p class="notice warning">Your balance of ${amount(balanceMils)} is below your threshold of ${amount(thresholdMils)}. <a href="#add-credit">Add credit</a> or <a href="/billing/settings">change the threshold</a>.</p></div>`;
}

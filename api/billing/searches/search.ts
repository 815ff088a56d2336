import { nameOfKey, readPaidKeys } from "../../../shared/credits/stored-answers.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { searchPriceMils } from "../../../shared/credits/plans.ts";
import { newId, requestId as requestIdSchema, timeOfId } from "../../../shared/ids.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { type LoggedSearch, readSearches } from "../../../shared/search-log/read-search-log.ts";
import { findRefused } from "../../../shared/search-log/refused-searches.ts";
import type { SearchEntry } from "../../ledger/find-searches.ts";
import { readSearchEntries } from "../../ledger/history.ts";
import { readSearchLedger } from "../../ledger/ledger-pages.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import { onlyTokenOf } from "../session/sessions.ts";
import { duration, gained, outcomeOf, searchAddress } from "./history.ts";
import { findPrevious, readAnswer, type ShownAnswer } from "./answers.ts";
import { answerLink, answerTabs, answerViews, resultsPage, type ShownElement, querySection } from "./answer-view.ts";
import { refusedView } from "./refused.ts";
import type { SearchesParts } from "./searches.ts";
import { amount, dollars, momentOf, shortMomentOf, timeElement } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { codeSamples, formAddress, requestBodyOf } from "../../playground/search-form.ts";

/**
 * GET /billing/searches/:requestId: the query of a search, what it cost and why, and its answer while that is kept; or why it was
 * refused.
 * @throws {CallerError} `not_found` also for a search of another organization, or of another token than the only one of the session.
 */
export async function writeSearch(
  { database, longReads }: SearchesParts,
  { request, response, caller }: PageRequest,
): Promise<AccountView> {
  const read = requestIdSchema.safeParse(request.params["requestId"]);
  if (!read.success) throw new CallerError("not_found");
  const only = onlyTokenOf(caller);
  const reading = () => readSearch(database, { ...caller, only }, read.data);
  const shown = await longReads.run(reading, caller.organizationId);
  if (!shown) {
    const refusal = await findRefused(database, read.data, caller.organizationId);
    if (!refusal || (only !== undefined && refusal.tokenId !== only)) throw new CallerError("not_found");
    return refusedView(refusal);
  }
  const { entry, answer } = shown;
  const { origin } = requestScopeOf(response);
  return {
    path: "/billing/searches",
    title: entry.search?.query.keyword ?? "Search",
    above: { path: "/billing/searches", label: "All searches" },
    body: html`${entry.search && actions(entry.search, shown, { caller, origin })}
<div class="pair">
${outcomeSection(only === undefined ? shown : withoutBalance(shown), read.data)}
${entry.search ? loggedQuery(entry.search) : notLogged}
</div>
${answerSection(answer, { ...shown, requestId: read.data, origin })}`,
  };
}

/** What a person does next with a search. To search again costs, so it is a form with the price on its button. */
function actions(
  { requestId, query }: LoggedSearch,
  { previous }: ShownSearch,
  { caller: { scopes, plan, organizationId }, origin }: { caller: Caller; origin: string },
): Html {
  const address = formAddress(query);
  const fields = [...new URL(address, origin).searchParams, ["organization", organizationId], ["key", newId("req")]];
  return html`<div class="row">
${
  scopes.includes("search") &&
  html`<form method="post" action="/playground/search">${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}<button>Run again for ${dollars(searchPriceMils(plan, query))}</button></form>`
}
<a class="button" href="${address}">Open in playground</a>
${previous && html`<a class="button" href="${searchAddress(requestId)}/compare">Compare with the answer of ${moment(timeOfId(previous.requestId))}</a>`}
<button type="button" class="plain" data-copy="code-curl" hidden>Copy as code</button>
</div>`;
}

const notLogged = html`<section class="panel" aria-labelledby="query-title"><h2 id="query-title">Query</h2>
<p>The query is no longer in the search log, or was never written to it.</p></section>`;

/** What a token may see that does not see the account. */
const withoutBalance = (shown: ShownSearch): ShownSearch => ({ ...shown, ledger: [], paidBy: undefined });

function outcomeSection({ entry, ledger, paidBy }: ShownSearch, requestId: string): Html {
  const { title, why, net } = outcomeOf(entry);
  return html`<section class="panel" aria-labelledby="outcome-title">
<h2 id="outcome-title"><span class="outcome ${entry.outcome}">${title}</span> ${net}</h2>
${why && html`<p>${why}.</p>`}
${paidBy !== undefined && html`<p><a href="${searchAddress(paidBy)}">The search that paid</a> <code>${paidBy}</code></p>`}
<p><code>${requestId}</code></p>
${ledger.length > 0 ? ledgerTable(ledger) : html`<p>${moment(entry.at)} UTC</p>`}
</section>`;
}

const ledgerTable = (
  ledger: ShownSearch["ledger"],
) => html`<div class="scroll" tabindex="0" role="region" aria-label="Ledger entries"><table class="stacked">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">Entry</th><th scope="col" class="number">Dollars</th><th scope="col" class="number">Balance</th></tr></thead>
<tbody>${ledger.map(
  ({ at, kind, amountMils, balanceAfterMils }) =>
    html`<tr><td data-label="When (UTC)">${moment(at)}</td><td data-label="Entry">${entryLabels[kind] ?? kind}</td><td class="number" data-label="Dollars">${gained(amountMils)}</td><td class="number" data-label="Balance">${amount(balanceAfterMils)}</td></tr>`,
)}</tbody>
</table></div>`;

const entryLabels: Record<string, string> = { charge: "Charge", reversal: "Credited back" };

const moment = (at: Date) => timeElement(at, shortMomentOf(at));

function loggedQuery({ query, token, at, durationMs, keyHash }: LoggedSearch): Html {
  const others: [name: string, value: Html | string][] = [
    ["Idempotency-Key", keyHash ? "yes" : "none"],
    ["Arrived (UTC)", moment(at)],
    ["Took", duration(durationMs)],
  ];
  return querySection({ format: "full", ...query }, token, others);
}

function answerSection(answer: ShownAnswer, shown: ShownSearch & { requestId: string; origin: string }): Html {
  const { entry, origin, requestId } = shown;
  const address = entry.search && formAddress(entry.search.query);
  const views = {
    page: answer.kind === "kept" ? resultsOf(answer.results, entry) : html`<p>${whyNone(answer, shown)}</p>`,
    json: answer.kind === "kept" ? answer.json : undefined,
    code: address ? codeSamples(origin, requestBodyOf(new URL(address, origin).searchParams)) : undefined,
  };
  return html`<section class="panel answer" id="answer" aria-labelledby="answer-title">
<div class="head"><h2 id="answer-title">Answer</h2>${answerTabs(views)}</div>
<p class="aside">${answerLink(searchAddress(requestId), requestId)}</p>
${answerViews(views)}
</section>`;
}

const resultsOf = (results: readonly ShownElement[], { search }: SearchEntry): Html =>
  results.length > 0
    ? resultsPage(results, (keyword) => formAddress({ ...search?.query, keyword }))
    : html`<p>No results.</p>`;

function whyNone(answer: ShownAnswer, { entry, previous }: ShownSearch): Html | string {
  if (answer.kind === "large")
    return "The answer is too large for this page. To get it, repeat the search with its Idempotency-Key: for 24 hours a repeat costs nothing.";
  if (entry.outcome !== "charged") return "This search was not charged, so no answer is kept.";
  if (!entry.search) return "It is no longer known whether an answer was kept.";
  if (entry.search.work?.source === "kept" && previous)
    return html`A kept answer answered this search: <a href="${searchAddress(previous.requestId)}">the one of ${momentOf(timeOfId(previous.requestId))}</a>.`;
  return entry.search.keyHash
    ? "The answer was kept for 24 hours."
    : "This search was sent without an Idempotency-Key, and its answer is not kept, or no longer.";
}

interface ShownSearch {
  entry: SearchEntry;
  ledger: Awaited<ReturnType<typeof readSearchLedger>>;
  answer: ShownAnswer;
  /** The last search before it with an answer to the same query, if there is one. */
  previous: Awaited<ReturnType<typeof findPrevious>>;
  /** The search that already paid under the key of this one; undefined if there is none or it is no longer known. */
  paidBy: string | undefined;
}

/**
 * Reads a search of an organization, or of the only token that may be seen.
 * @returns undefined unless there is a completed search with this id. @throws {CallerError} `not_found` for one of another token.
 */
export async function readSearch(
  database: Database,
  { organizationId, only }: { organizationId: string; only: string | undefined },
  requestId: string,
): Promise<ShownSearch | undefined> {
  const [decided] = await readSearchEntries(database, organizationId, [requestId]);
  if (!decided) return undefined;
  const search = (await readSearches(database, organizationId, [requestId])).get(requestId);
  if (only !== undefined && search?.token.tokenId !== only) throw new CallerError("not_found");
  const entry = { ...decided, search };
  const ledger = await readSearchLedger(database, requestId);
  const isCharged = search && entry.outcome === "charged";
  const answer: ShownAnswer = isCharged ? await readAnswer(database, organizationId, search) : { kind: "none" };
  const previous = isCharged ? await findPrevious(database, organizationId, search, only) : undefined;
  return { entry, ledger, answer, previous, paidBy: await readPayer(database, organizationId, entry) };
}

async function readPayer(
  database: Database,
  organizationId: string,
  { at, search, ...entry }: SearchEntry,
): Promise<string | undefined> {
  const isRepeat = "reason" in entry && (entry.reason === "already_paid" || entry.reason === "idempotency_key_reused");
  if (!isRepeat || !search?.keyHash) return undefined;
  const key = { organizationId, hash: search.keyHash };
  const paid = (await readPaidKeys(database, [key])).get(nameOfKey(key));
  const [payer] = paid ? await readSearchEntries(database, organizationId, [paid.requestId]) : [];
  // After 24 hours the key may have paid for a later search. This repeat did not follow that one.
  return payer && payer.at <= at ? paid?.requestId : undefined;
}

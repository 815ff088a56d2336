import { nameOfKey, readPaidKeys, readStoredAnswers } from "../../../shared/credits/stored-answers.ts";
import type { Turns } from "../../../shared/concurrency/turns.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { requestId as requestIdSchema } from "../../../shared/ids.ts";
import { type LoggedSearch, readSearches } from "../../../shared/search-log/read-search-log.ts";
import type { SearchEntry } from "../../ledger/find-searches.ts";
import { readSearchEntries } from "../../ledger/history.ts";
import { readSearchLedger } from "../../ledger/ledger-pages.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import { onlyTokenOf } from "../session/sessions.ts";
import { tokenLabel } from "./find-form.ts";
import { duration, gained, outcomeOf, searchAddress } from "./history-table.ts";
import { resultsPage, type ShownElement, shownBytesMax } from "./results-page.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { amount, dayOf, timeElement, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { formAddress } from "../../playground/search-fields.ts";

/**
 * GET /billing/searches/:requestId: the query of a search, what it cost and why, and its answer while that is kept.
 * @throws {CallerError} `not_found` also for a search of another organization, or of another token than the only one of the session.
 */
export function writeSearch({ database, longReads }: { database: Database; longReads: Turns }) {
  const readShown = (organizationId: string, requestId: string) =>
    longReads.run(() => orPostgresUnavailable(readSearch(database, organizationId, requestId)));
  return async ({ request, caller }: PageRequest): Promise<AccountView> => {
    const read = requestIdSchema.safeParse(request.params["requestId"]);
    const shown = read.success ? await readShown(caller.organizationId, read.data) : undefined;
    if (!read.success || !shown) throw new CallerError("not_found");
    const { entry, answer } = shown;
    const only = onlyTokenOf(caller);
    if (only !== undefined && entry.search?.token.tokenId !== only) throw new CallerError("not_found");
    return {
      path: "/billing/searches",
      title: entry.search?.query.keyword ?? "Search",
      above: { path: "/billing/searches", label: "All searches" },
      body: html`<div class="pair">
${outcomeSection(only === undefined ? shown : withoutBalance(shown), read.data)}
${entry.search ? querySection(entry.search) : notLogged}
</div>
${answerSection(answer, shown)}`,
    };
  };
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

const moment = (at: Date) => timeElement(at, `${dayOf(at)} ${timeOf(at)}`);

function querySection({ query, token, at, durationMs, keyHash }: LoggedSearch): Html {
  const fields: [name: string, value: Html | string | undefined][] = [
    ["Keyword", query.keyword],
    ["Location", query.location.replaceAll(",", ", ")],
    ["Language", query.language],
    ["Device", query.device],
    ["Depth", String(query.depth)],
    ["Domain", query.targetDomain],
    ["Types", query.types?.join(", ")],
    ["Format", query.format ?? "full"],
    ["Token", html`${tokenLabel(token)} <code>${token.tokenId}</code>`],
    ["Idempotency-Key", keyHash ? "yes" : "none"],
    ["Arrived (UTC)", moment(at)],
    ["Took", duration(durationMs)],
  ];
  return html`<section class="panel" aria-labelledby="query-title">
<h2 id="query-title">Query</h2>
<dl class="fields">${fields.map(([name, value]) => value !== undefined && html`<div${name === "Token" && html` class="wide"`}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
</section>`;
}

function answerSection(answer: ShownAnswer, shown: ShownSearch): Html {
  return html`<section class="panel" id="answer" aria-labelledby="answer-title">
<h2 id="answer-title">Answer</h2>
${answer.kind === "kept" ? keptAnswer(answer, shown) : html`<p>${whyNone(answer, shown)}</p>`}
</section>`;
}

function keptAnswer({ results, json }: ShownAnswer & { kind: "kept" }, { entry }: ShownSearch): Html {
  const page =
    results.length > 0
      ? resultsPage(results, (keyword) => formAddress({ ...entry.search?.query, keyword }))
      : html`<p>No results.</p>`;
  return html`${page}
<details><summary>JSON</summary><pre tabindex="0" role="region" aria-label="JSON">${json}</pre></details>`;
}

function whyNone(answer: ShownAnswer, { entry }: ShownSearch): string {
  if (answer.kind === "large")
    return "The answer is too large for this page. To get it, repeat the search with its Idempotency-Key: for 24 hours a repeat costs nothing.";
  if (entry.outcome !== "charged") return "This search was not charged, so no answer is kept.";
  if (!entry.search) return "It is no longer known whether an answer was kept.";
  return entry.search.keyHash
    ? "The answer was kept for 24 hours."
    : "This search was sent without an Idempotency-Key, so its answer was not kept.";
}

/** The answer of a search: kept, too large to show, or not (or no longer) kept. */
type ShownAnswer = { kind: "kept"; results: ShownElement[]; json: string } | { kind: "large" } | { kind: "none" };

/** One search of an organization. */
interface ShownSearch {
  entry: SearchEntry;
  ledger: Awaited<ReturnType<typeof readSearchLedger>>;
  answer: ShownAnswer;
  /** The search that already paid under the key of this one; undefined if there is none or it is no longer known. */
  paidBy: string | undefined;
}

/** Reads a search of an organization. @returns undefined unless the organization has a completed search with this id. */
async function readSearch(
  database: Database,
  organizationId: string,
  requestId: string,
): Promise<ShownSearch | undefined> {
  const [decided] = await readSearchEntries(database, organizationId, [requestId]);
  if (!decided) return undefined;
  const search = (await readSearches(database, organizationId, [requestId])).get(requestId);
  const entry = { ...decided, search };
  const ledger = await readSearchLedger(database, requestId);
  const answer = await readAnswer(database, organizationId, entry);
  return { entry, ledger, answer, paidBy: await readPayer(database, organizationId, entry) };
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

/** Reads the answer under the key of a search, if this search paid for it. */
async function readAnswer(database: Database, organizationId: string, entry: SearchEntry): Promise<ShownAnswer> {
  const { outcome, search } = entry;
  const hash = search?.keyHash;
  if (outcome !== "charged" || !hash) return { kind: "none" };
  const [stored] = (await readStoredAnswers(database, [{ organizationId, hash }])).values();
  if (stored?.requestId !== search.requestId) return { kind: "none" };
  if (stored.body.length > shownBytesMax) return { kind: "large" };
  // A worker wrote it.
  const answer: { results: ShownElement[] } = JSON.parse(stored.body.toString());
  return { kind: "kept", results: answer.results, json: JSON.stringify(answer, null, 2) };
}

import { CallerError } from "../../../shared/errors.ts";
import { requestId as requestIdSchema } from "../../../shared/ids.ts";
import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { PageRequest } from "../frame/account-handlers.ts";
import type { AccountReads } from "../frame/account-reads.ts";
import { tokenLabel } from "./find-form.ts";
import { duration, gained, outcomeOf, searchAddress } from "./history-table.ts";
import type { ShownAnswer, ShownSearch } from "./read-search.ts";
import { resultsPage } from "./results-page.ts";
import { amount, dayOf, timeElement, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { formAddress } from "../../playground/search-fields.ts";

/**
 * GET /billing/searches/:requestId: what was searched, what it cost and why, and its answer while that is kept.
 * @throws {CallerError} `not_found` also for a search of another organization.
 */
export function writeSearch({ reads }: { reads: AccountReads }) {
  return async ({ request, caller }: PageRequest): Promise<AccountView> => {
    const read = requestIdSchema.safeParse(request.params["requestId"]);
    const shown = read.success ? await reads.readSearch(caller.organizationId, read.data) : undefined;
    if (!read.success || !shown) throw new CallerError("not_found");
    const { entry, answer } = shown;
    return {
      path: "/billing/searches",
      title: entry.search?.query.keyword ?? "Search",
      above: { path: "/billing/searches", label: "All searches" },
      body: html`<div class="pair">
${outcomeSection(shown, read.data)}
${entry.search ? querySection(entry.search) : notLogged}
</div>
${answerSection(answer, shown)}`,
    };
  };
}

const notLogged = html`<section class="panel" aria-labelledby="query-title"><h2 id="query-title">Query</h2>
<p>What was searched is not kept any more, or was never written.</p></section>`;

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

/** The answer of a search as a page of results, and its JSON; or why there is none. */
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
      : html`<p>Nothing was found.</p>`;
  return html`${page}
<details><summary>JSON</summary><pre tabindex="0" role="region" aria-label="JSON">${json}</pre></details>`;
}

function whyNone(answer: ShownAnswer, { entry }: ShownSearch): string {
  if (answer.kind === "large")
    return "The answer is too large for this page. Send the search again with its Idempotency-Key to get it: a repeat costs nothing for 24 hours.";
  if (entry.outcome !== "charged") return "This search was not paid for, so no answer is kept.";
  if (!entry.search) return "Whether an answer is kept is not known any more.";
  return entry.search.keyHash
    ? "The answer was kept for 24 hours."
    : "This search was sent without an Idempotency-Key, so its answer was not kept.";
}

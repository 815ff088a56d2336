import type { Query } from "../../shared/query/query.ts";
import { shownBytesMax } from "../billing/searches/read-search.ts";
import { resultsPage, type ShownElement } from "../billing/searches/results-page.ts";
import { searchAddress } from "../billing/searches/history-table.ts";
import { amount, count } from "../pages/format.ts";
import { html, type Html } from "../pages/html.ts";
import { formAddress } from "./search-fields.ts";

/**
 * The answer to a search as a page of results, and as JSON.
 * @param asked.idempotencyKey under which a repeat of the search is free.
 */
export function answerView(body: Buffer, { query, idempotencyKey }: { query: Query; idempotencyKey: string }): Html {
  if (body.length > shownBytesMax) return answerPanel(largeAnswer(idempotencyKey));
  const answer: { requestId: string; creditsCharged: number; results: ShownElement[] } = JSON.parse(body.toString());
  const { results, creditsCharged, requestId } = answer;
  const elements = `${count(results.length)} ${results.length === 1 ? "element" : "elements"}`;
  const view = (value: string, label: string, isFirst: boolean) =>
    html`<label><input type="radio" name="view" value="${value}" autocomplete="off"${isFirst && html` checked`}>${label}</label>`;
  const page =
    results.length > 0
      ? resultsPage(results, (keyword) => formAddress({ ...query, keyword }))
      : html`<p class="serp">Nothing was found.</p>`;
  return answerPanel(
    html`<p class="aside">${elements} for ${amount(creditsCharged)}, <a href="${searchAddress(requestId)}">${requestId}</a></p>
${page}
<div class="json"><button type="button" class="plain" data-copy="json" hidden>Copy</button><pre id="json" tabindex="0" role="region" aria-label="JSON">${JSON.stringify(answer, undefined, 2)}</pre></div>`,
    html`<div class="tabs" role="radiogroup" aria-label="Show the answer as">${view("page", "Page", true)}${view("json", "JSON", false)}</div>`,
  );
}

const answerPanel = (content: Html, tabs: Html | false = false): Html =>
  html`<section class="panel shown" id="answer" aria-labelledby="answer-title">
<div class="head"><h2 id="answer-title">Answer</h2>${tabs}</div>
${content}</section>`;

const largeAnswer = (idempotencyKey: string) =>
  html`<p>The answer is too large for this page. Send the same search with the header <code>Idempotency-Key: ${idempotencyKey}</code> to get it: a repeat costs nothing for 24 hours.</p>`;

import { type ResultType, resultTypeMeanings } from "../../shared/results.ts";
import { shownBytesMax } from "../billing/searches/read-search.ts";
import { amount } from "../pages/format.ts";
import { html, type Html } from "../pages/html.ts";

/** One result of an answer. A compact answer has only the first three fields. */
interface Shown {
  title: string;
  url: string;
  description: string;
  type?: ResultType;
  rank?: number;
  breadcrumb?: string;
  richSnippet?: { top: string[]; bottom: string[] };
  siteLinks?: { title: string; url: string; description: string }[];
}

/**
 * The answer to a search as a page of results, and its JSON. Nothing of it is loaded from elsewhere.
 * @param idempotencyKey under which a repeat of the search is free.
 */
export function answerView(body: Buffer, idempotencyKey: string): Html {
  if (body.length > shownBytesMax) return largeAnswer(idempotencyKey);
  const text = body.toString();
  const answer: { requestId: string; creditsCharged: number; results: Shown[] } = JSON.parse(text);
  const { results, creditsCharged, requestId } = answer;
  return html`<section class="panel" id="answer" aria-labelledby="answer-title"><h2 id="answer-title">Answer</h2>
<p class="aside">${results.length} elements for ${amount(creditsCharged)}. <a href="/billing/searches/${requestId}">${requestId}</a></p>
${results.length > 0 ? html`<ol class="results">${results.map(element)}</ol>` : html`<p>Nothing was found.</p>`}
<details><summary>JSON</summary><pre tabindex="0" role="region" aria-label="JSON">${JSON.stringify(answer, undefined, 2)}</pre></details></section>`;
}

const largeAnswer = (idempotencyKey: string) =>
  html`<section class="panel" id="answer" aria-labelledby="answer-title"><h2 id="answer-title">Answer</h2>
<p>The answer is too large for this page. Send the same search with the header <code>Idempotency-Key: ${idempotencyKey}</code> to get it: a repeat costs nothing for 24 hours.</p></section>`;

function element({ type, rank, title, url, breadcrumb, description, richSnippet, siteLinks = [] }: Shown): Html {
  const { top = [], bottom = [] } = richSnippet ?? {};
  const name = title || url;
  return html`<li${type !== undefined && html` class="${type}"`}>
${type !== undefined && html`<p class="why" title="${resultTypeMeanings[type]}">${type.replaceAll("_", " ")}${rank !== undefined && html` · ${rank}`}</p>`}
${name !== "" && html`<strong>${link(url, name)}</strong>`}
${(breadcrumb || url) && html`<span class="why">${breadcrumb || url}</span>`}
${top.map((line) => html`<p class="aside">${line}</p>`)}
${description !== "" && html`<p>${description}</p>`}
${bottom.map((line) => html`<p class="aside">${line}</p>`)}
${siteLinks.length > 0 && html`<ul>${siteLinks.map((one) => html`<li>${link(one.url, one.title || one.url)}${one.description && html` <span class="aside">${one.description}</span>`}</li>`)}</ul>`}
</li>`;
}

/** Addresses come from providers: no other protocol is made a link. */
const link = (url: string, name: string): Html =>
  /^https?:\/\//.test(url) ? html`<a href="${url}" rel="noopener noreferrer nofollow">${name}</a>` : html`${name}`;

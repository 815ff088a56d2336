import { html, type Html } from "../../pages/html.ts";
import type { ShownAnswer, ShownResult, ShownSearch } from "./read-search.ts";

/** The answer of a search as people read it, and its JSON; or why there is none. */
export function answerSection(answer: ShownAnswer, shown: ShownSearch): Html {
  return html`<section class="panel" id="answer" aria-labelledby="answer-title">
<h2 id="answer-title">Answer</h2>
${answer.kind === "kept" ? keptAnswer(answer) : html`<p>${whyNone(answer, shown)}</p>`}
</section>`;
}

function keptAnswer({ results, json }: ShownAnswer & { kind: "kept" }): Html {
  const organic = results.filter(({ type }) => type === undefined || type === "organic");
  const others = results.length - organic.length;
  return html`${organic.length > 0 ? html`<ol class="results">${organic.map(result)}</ol>` : html`<p>It has no organic results.</p>`}
${others > 0 && html`<p class="aside">${others} more elements of other types are in the JSON.</p>`}
<details><summary>JSON</summary><pre tabindex="0" role="region" aria-label="JSON">${json}</pre></details>`;
}

function result({ title, url, description }: ShownResult): Html {
  const name = title || url || "Without a title";
  return html`<li>${isLink(url) ? html`<a href="${url}" rel="noopener noreferrer nofollow">${name}</a>` : name}
${url && html`<span class="why">${url}</span>`}${description && html`<p>${description}</p>`}</li>`;
}

/** Addresses come from providers: no other protocol is made a link. */
function isLink(url: string | null | undefined): url is string {
  return url !== undefined && url !== null && /^https?:\/\//.test(url);
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

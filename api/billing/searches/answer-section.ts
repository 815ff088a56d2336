import { html, type Html } from "../../pages/html.ts";
import { formAddress } from "../../playground/form-address.ts";
import type { ShownAnswer, ShownSearch } from "./read-search.ts";
import { resultsPage } from "./results-page.ts";

/** The answer of a search as a page of results, and its JSON; or why there is none. */
export function answerSection(answer: ShownAnswer, shown: ShownSearch): Html {
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

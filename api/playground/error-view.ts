import { issuesIn } from "../../shared/error-messages.ts";
import { type CallerError, errorBody, type ErrorDetails, errors } from "../../shared/errors.ts";
import { html, type Html } from "../pages/html.ts";

/** Why a search was not answered: for people, what they can do about it, and the error as the API sends it. */
export function errorView(requestId: string, { code, message, details }: CallerError): Html {
  return html`<section class="panel shown" id="answer" aria-labelledby="answer-title">
<div class="head"><h2 id="answer-title">No answer</h2><code>${errors[code].status} ${code}</code></div>
<div class="notice warning" role="alert"><p>${message}</p>${issueList(details)}</div>
${code === "out_of_credits" && html`<p><a class="button" href="/billing">Go to your credit</a></p>`}
<pre tabindex="0" role="region" aria-label="JSON">${JSON.stringify(errorBody(requestId, code, details), undefined, 2)}</pre></section>`;
}

/** The fields that were refused, if there are several: the message says the first one. */
function issueList(details: ErrorDetails): Html | false {
  const listed = issuesIn(details);
  return (
    listed.length > 1 &&
    html`<ul>${listed.map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}</ul>`
  );
}

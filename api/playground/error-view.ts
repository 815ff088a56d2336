import { z } from "zod";
import { type CallerError, errorBody, errors } from "../../shared/errors.ts";
import { html, type Html } from "../pages/html.ts";

/** Why a search was not answered: for people, what they can do about it, and the error as the API sends it. */
export function errorView(requestId: string, { code, message, details }: CallerError): Html {
  return html`<section class="panel shown" id="answer" aria-labelledby="answer-title">
<div class="head"><h2 id="answer-title">No answer</h2><code>${errors[code].status} ${code}</code></div>
<div class="notice warning" role="alert"><p>${message}</p>${issueList(details.issues)}</div>
${code === "out_of_credits" && html`<p><a class="button" href="/billing">Go to your credit</a></p>`}
<pre tabindex="0" role="region" aria-label="JSON">${JSON.stringify(errorBody(requestId, code, details), undefined, 2)}</pre></section>`;
}

const issueSchema = z.array(z.object({ path: z.string(), message: z.string() })).catch([]);

/** The fields that were refused. Most errors have none. */
function issueList(issues: unknown): Html | false {
  const listed = issueSchema.parse(issues);
  return (
    listed.length > 0 &&
    html`<ul>${listed.map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}</ul>`
  );
}

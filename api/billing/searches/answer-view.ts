import { html, type Html } from "../../pages/html.ts";

/** What an answer can be looked at as. On a wide screen the page stands beside the JSON, or beside the code without one. */
interface AnswerViews {
  page: Html;
  /** The text of the JSON. */
  json?: string | undefined;
  code?: Html | undefined;
}

/** The tabs of an answer. They are radio buttons, so they need no script. */
export function answerTabs({ json, code }: AnswerViews): Html {
  const tab = (value: string, label: string, isFirst = false) =>
    html`<label><input type="radio" name="view" value="${value}" autocomplete="off"${isFirst && html` checked`}>${label}</label>`;
  return html`<div class="tabs" role="radiogroup" aria-label="Show">${tab("page", "Answer", true)}${json !== undefined && tab("json", "JSON")}${code && tab("code", "Code")}</div>`;
}

/** What the tabs show. The script answer.js makes a tree of the JSON. */
export function answerViews({ page, json, code }: AnswerViews): Html {
  return html`<div class="views"><div class="page">${page}</div>
${
  json !== undefined &&
  html`<div class="json"><div class="tools"><p id="path" class="aside" role="status"></p><button type="button" class="plain" data-copy="json" hidden>Copy</button></div><pre id="json" tabindex="0" role="region" aria-label="JSON">${json}</pre></div>
`
}${code}</div>`;
}

/** The address of an answer's page, which those can open who may see the search. */
export const answerLink = (address: string, text: string): Html =>
  html`<a id="address" href="${address}">${text}</a> <button type="button" class="plain" data-copy="address" hidden>Copy link</button>`;

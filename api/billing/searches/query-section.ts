import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import { html, type Html } from "../../pages/html.ts";
import { tokenLabel } from "./find-form.ts";

type LoggedQuery = LoggedSearch["query"];

/** The query of a search as far as it is known, its token, and the other fields in this order. */
export function querySection(
  query: { [Name in keyof LoggedQuery]?: LoggedQuery[Name] | undefined },
  token: LoggedSearch["token"],
  others: readonly [name: string, value: Html | string][],
  note?: string,
): Html {
  const fields: [name: string, value: Html | string | number | undefined][] = [
    ["Keyword", query.keyword],
    ["Location", query.location?.replaceAll(",", ", ")],
    ["Language", query.language],
    ["Device", query.device],
    ["Depth", query.depth],
    ["Domain", query.targetDomain],
    ["Types", query.types?.join(", ")],
    ["Format", query.format],
    ["Token", html`${tokenLabel(token)} <code>${token.tokenId}</code>`],
    ...others,
  ];
  return html`<section class="panel" aria-labelledby="query-title">
<h2 id="query-title">Query</h2>
<dl class="fields">${fields.map(([name, value]) => value !== undefined && html`<div${name === "Token" && html` class="wide"`}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${note !== undefined && html`<p class="aside">${note}</p>`}
</section>`;
}

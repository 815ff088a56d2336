import { groupTypes, type ResultType, resultTypeMeanings } from "../../../shared/results.ts";
import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import { type Html, html } from "../../pages/html.ts";
import { tokenLabel } from "./history.ts";

/** What an answer can be looked at as. On a wide screen the page stands beside the JSON, or beside the code without one. */
interface AnswerViews {
  page: Html;
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

/** A larger answer is not shown: writing it would hold up the searches of this process. */
export const shownBytesMax = 256 * 1024;

interface ShownLink {
  title: string;
  url: string;
  description: string;
}

/** One element of an answer. A compact answer has only the first three fields. */
export interface ShownElement extends ShownLink {
  type?: ResultType;
  rank?: number;
  breadcrumb?: string;
  richSnippet?: { top: string[]; bottom: string[] };
  siteLinks?: ShownLink[];
}

/** Headings of the blocks that have one on a results page. */
const headings: Partial<Record<ResultType, string>> = {
  ai_overview: "AI overview",
  people_also_ask: "People also ask",
  local_pack: "Places",
  top_stories: "Top stories",
  video: "Videos",
  images: "Images",
  shopping: "Products",
  discussions: "Discussions and forums",
  related_searches: "Related searches",
};

/**
 * The elements of an answer as on a results page, in order, each with its type and rank. Nothing is loaded from other sites.
 * @param addressOf the address of the form with another keyword.
 */
export function resultsPage(elements: readonly ShownElement[], addressOf: (keyword: string) => string): Html {
  return html`<ol class="serp">${elements.map((element) => elementItem(element, addressOf))}</ol>`;
}

function elementItem(shown: ShownElement, addressOf: (keyword: string) => string): Html {
  const { type, rank, title, url, breadcrumb, description, richSnippet, siteLinks = [] } = shown;
  const { top = [], bottom = [] } = richSnippet ?? {};
  const heading = type && headings[type];
  const source = breadcrumb || url;
  const name = title || url;
  const item = (one: ShownLink) =>
    type === "related_searches" && one.url === ""
      ? html`<li><a href="${addressOf(one.title)}">${one.title}</a></li>`
      : linkItem(one);
  return html`<li${type !== undefined && html` class="${type}${groupTypes.has(type) && " group"}"`}>
${type !== undefined && html`<p class="kind" title="${resultTypeMeanings[type]}">${type.replaceAll("_", " ")}${rank !== undefined && html` · ${rank}`}</p>`}
<div>${heading !== undefined && html`<h3>${heading}</h3>`}
${source !== "" && html`<p class="source">${type === "paid" && html`<b>Sponsored</b> `}${source}</p>`}
${name !== "" && html`<p class="title">${link(url, name)}</p>`}
${top.length > 0 && html`<p class="facts">${top.join(" · ")}</p>`}
${description !== "" && html`<p class="text">${description}</p>`}
${bottom.length > 0 && html`<p class="facts">${bottom.join(" · ")}</p>`}
${siteLinks.length > 0 && html`<ul>${siteLinks.map(item)}</ul>`}</div>
</li>`;
}

const linkItem = ({ title, url, description }: ShownLink): Html =>
  html`<li>${link(url, title || url)}${description !== "" && html` <span>${description}</span>`}</li>`;

/** Addresses come from providers, so only http and https become links. The headers of the page keep the referrer from other sites. */
export const link = (url: string, name: string): Html =>
  /^https?:\/\//.test(url) ? html`<a href="${url}">${name}</a>` : html`${name}`;

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

import { buildElement, type RawLink } from "../build-element.ts";
import { isGoogleHost } from "../google-hosts.ts";
import type { Element } from "../provider.ts";
import { isObject } from "../read-rows.ts";
import { Row, tableLine, toMembers, toText, toTexts } from "./fields.ts";
import { ratingOf, restOf } from "./links.ts";
import { toSiteLinks } from "./organic-results.ts";

/**
 * An answer box with a source is a featured snippet; one whose only address is Google's own is an answer of the engine. Weather,
 * stocks and the like have fields of many names: they become facts.
 */
export function readAnswerBox(value: unknown): Element[] | undefined {
  if (Array.isArray(value)) {
    const boxes = toMembers(value).flatMap((box) => readAnswerBox(box) ?? []);
    return boxes.length > 0 ? boxes : undefined;
  }
  if (!isObject(value)) return undefined;
  const row = new Row(value);
  const type = row.text("type");
  const title = row.text("title");
  const url = row.text("link");
  const answer = row.first("answer", "result");
  const snippet = row.text("snippet");
  const list = toTexts(row.take("list"));
  const definitions = toTexts(row.take("definitions"));
  const breadcrumb = row.text("displayed_link");
  const date = row.text("date");
  const table = toMembers(row.take("table")).map(tableLine);
  const siteLinks = toSiteLinks(row.take("sitelinks"));
  // The source's name: the breadcrumb and the domain tell it.
  if (url !== "") row.skip("source");
  const facts = restOf(row);
  const longAnswer = snippet || list.join(" ") || definitions.join(" ");
  const bottom = [...(snippet === "" ? [] : [...list, ...definitions]), ...table, ...facts.lines];
  const links = [...siteLinks, ...facts.links];
  // A box of a kind that SerpApi does not know either has nothing but its type.
  if ((title || url || answer || longAnswer) === "" && bottom.length + links.length === 0) return [];
  return [
    buildElement(hasSource(url) ? "featured_snippet" : "answer_box", {
      title: title || (bottom.length === 0 ? "" : type.replaceAll("_", " ")),
      url,
      breadcrumb,
      description: longAnswer || answer,
      top: [longAnswer === "" ? "" : answer, date],
      bottom,
      siteLinks: links,
    }),
  ];
}

function hasSource(url: string): boolean {
  return url !== "" && !isGoogleHost(URL.parse(url)?.host ?? "");
}

/** A knowledge panel has no URL of its own: the site of the entity, its source and its lists are among its links. */
export function readKnowledgeGraph(value: unknown): Element[] | undefined {
  if (!isObject(value)) return undefined;
  const row = new Row(value);
  const title = row.text("title");
  const description = row.text("description");
  const type = row.text("type");
  const rating = ratingOf(row);
  const website = row.text("website");
  const sources = readSource(row.take("source"));
  // A list of facts has no name that is displayed.
  const list = restOf(new Row(row.take("list")));
  const facts = restOf(row);
  if ((title || description) === "" && facts.lines.length + facts.links.length === 0) return undefined;
  return [
    buildElement("knowledge_graph", {
      title,
      description,
      top: [type, rating],
      bottom: [...facts.lines, ...list.lines],
      siteLinks: [{ title: website && title, url: website }, ...sources, ...facts.links, ...list.links],
    }),
  ];
}

/** `{name, link}`, or only a name. */
function readSource(value: unknown): RawLink[] {
  const row = new Row(value);
  return [{ title: row.first("name", "title") || toText(value), url: row.text("link") }];
}

/** An element of an unknown kind: its own texts, and its members as links. None if it displays nothing. */
export function readOther(name: string, value: unknown): Element[] {
  const own = new Row(isObject(value) ? value : { [name]: typeof value === "boolean" ? undefined : value });
  const title = isObject(value) ? own.text("title") : "";
  const url = own.text("link");
  const isShown = own.rest().length > 0;
  const description = isObject(value) ? own.first("snippet", "description") : isShown ? own.text(name) : "";
  const chips = own.rest().flatMap(([field, list]) => (isListOfTexts(list) ? own.texts(field) : []));
  const { lines, links } = restOf(own);
  const siteLinks = [...links, ...chips.map((chip) => ({ title: chip }))];
  if ((title || url || description) === "" && lines.length + siteLinks.length === 0) return [];
  return [buildElement("other", { title: title || name, url, description, bottom: lines, siteLinks })];
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((member) => typeof member === "string");
}

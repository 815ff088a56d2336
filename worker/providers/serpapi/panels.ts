import { buildElement, joinLines, joinWithDots, type RawLink } from "../build-element.ts";
import { isOnGoogle } from "../sanitize.ts";
import type { Element } from "../provider.ts";
import { isObject } from "../read-rows.ts";
import {
  describe,
  ratingOf,
  restOf,
  Row,
  shownTexts,
  tableLine,
  titleOf,
  toMembers,
  toRows,
  toText,
  toTexts,
  urlOf,
} from "./fields.ts";
import { toSiteLinks } from "./organic-results.ts";

/**
 * An answer box with a source is a featured snippet; one whose only address is Google's is Google's own answer. The many fields
 * of weather, stocks and the like become facts.
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
  // The breadcrumb and the domain already name the source.
  if (url !== "") row.skip("source");
  const facts = restOf(row);
  const longAnswer = snippet || list.join(" ") || definitions.join(" ");
  const bottom = [...(snippet === "" ? [] : [...list, ...definitions]), ...table, ...facts.lines];
  const links = [...siteLinks, ...facts.links];
  // A box of a kind unknown to SerpApi has nothing but its type.
  if ((title || url || answer || longAnswer) === "" && bottom.length + links.length === 0) return [];
  return [
    buildElement(url !== "" && !isOnGoogle(url) ? "featured_snippet" : "answer_box", {
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

/** Blocks of a generated text, nested ones included. */
const blocksMax = 1_000;
const depthMax = 20;

/**
 * Some overviews are only announced, because their text would take a second search. They become an element without a
 * description. An overview that Google could not generate becomes none.
 */
export function readAiOverview(value: unknown): Element[] | undefined {
  if (!isObject(value)) return undefined;
  const row = new Row(value);
  const isAnnounced = row.text("page_token") !== "";
  const isMissing = row.text("error") !== "";
  const text = readTextBlocks(row.take("text_blocks"));
  const siteLinks = [
    ...toRows(row.take("references")).map(toReference),
    ...toRows(row.take("products")).map(toProduct),
    ...text.links,
  ];
  const description = joinLines([text.description, ...row.rest().flatMap(([name, part]) => shownTexts(name, part))]);
  if (description !== "" || siteLinks.length > 0) return [buildElement("ai_overview", { description, siteLinks })];
  if (isAnnounced) return [buildElement("ai_overview", {})];
  return isMissing ? [] : undefined;
}

function toReference(row: Row): RawLink {
  const title = row.text("title");
  const description = joinWithDots(row.text("source"), row.text("snippet"));
  return { title, url: row.text("link"), description };
}

function toProduct(row: Row): RawLink {
  const title = titleOf(row);
  return { title, url: urlOf(row), description: describe(row, [row.text("price"), ratingOf(row)], title) };
}

/** A generated text, and the links within it: cited words, videos, stories. */
type GeneratedText = { description: string; links: RawLink[] };

/** The text of blocks that contain paragraphs, headings, lists, tables, comparisons or further blocks. */
export function readTextBlocks(value: unknown): GeneratedText {
  let blocksLeft = blocksMax;
  const links: RawLink[] = [];
  const textsWithin = (part: unknown, depth: number): string[] => {
    if (depth > depthMax) return [];
    if (Array.isArray(part)) return toMembers(part).flatMap((inner) => textsWithin(inner, depth + 1));
    if (!isObject(part)) return [toText(part)];
    if (blocksLeft === 0) return [];
    blocksLeft -= 1;
    const block = new Row(part);
    const own = ownTexts(block, links);
    const inner = ["list", "text_blocks"].flatMap((name) => textsWithin(block.take(name), depth + 1));
    return [...own, ...inner, ...block.rest().flatMap(([name, rest]) => shownTexts(name, rest))];
  };
  return { description: joinLines(textsWithin(value, 0)), links };
}

/** The texts of a block without the blocks within it, whose links are added to the list. */
function ownTexts(block: Row, links: RawLink[]): string[] {
  block.skip("type");
  const title = block.text("title");
  const url = urlOf(block);
  if (url !== "") links.push({ title, url });
  const video = block.take("video");
  const cited = [
    ...toRows(block.take("snippet_links")),
    ...toRows(block.take("top_stories")),
    ...(isObject(video) ? [new Row(video)] : []),
  ];
  for (const row of cited) {
    const name = titleOf(row);
    links.push({ title: name, url: urlOf(row), description: describe(row, [row.text("source")], name) });
  }
  return [
    title,
    block.text("subtitle"),
    block.text("snippet"),
    ...toMembers(block.take("table")).map(tableLine),
    block.texts("product_labels").join(" · "),
    ...toRows(block.take("comparison")).map(comparisonLine),
  ];
}

/** `Height: 5.81 inches, 5.82 inches`. */
const comparisonLine = (row: Row): string => `${row.text("feature")}: ${row.texts("values").join(", ")}`;

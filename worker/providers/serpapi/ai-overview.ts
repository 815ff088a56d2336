import { buildElement, joinWithDots, type RawLink, joinLines } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { isObject } from "../read-rows.ts";
import { Row, shownTexts, tableLine, toMembers, toRows, toText } from "./fields.ts";
import { describe, ratingOf, titleOf, urlOf } from "./links.ts";

/** Blocks of a generated text, nested ones included. */
const blocksMax = 1_000;
const depthMax = 20;

/**
 * Some overviews are only announced: their text would take a second search. Such an overview becomes an element without a
 * description. One that Google could not generate becomes none.
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
export type GeneratedText = { description: string; links: RawLink[] };

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
function comparisonLine(row: Row): string {
  return `${row.text("feature")}: ${row.texts("values").join(", ")}`;
}

import { joinWithDots, type RawLink, joinLines } from "../build-element.ts";
import type { Fields } from "../read-rows.ts";
import { firstText, formatDate, tableLines, toRows, underHeading } from "./item-fields.ts";

/** What an AI Overview holds: of the page, of a knowledge panel, or of the answer to a question. */
type Overview = {
  /** Each with its heading. */
  paragraphs: string[];
  /** The rows of its tables. */
  tableRows: string[];
  /** The pages that it cites as a whole, and then those of each part. */
  links: RawLink[];
};

export function isOverview({ type }: Fields): boolean {
  return typeof type === "string" && /(?:^|_)ai_overview(?:_|$)/.test(type);
}

export function readOverview(overview: Fields): Overview {
  const parts = toRows(overview["items"]);
  const paragraphs = parts.map(paragraphOf).filter((text) => text !== "");
  return {
    paragraphs:
      paragraphs.length > 0 ? paragraphs : [plainMarkdown(overview["markdown"])].filter((text) => text !== ""),
    tableRows: parts.flatMap(tableLines),
    links: [...citedBy(overview), ...parts.flatMap(linksOf)],
  };
}

/** A part with its components as one paragraph. A video is a link and not a part of the text. */
function paragraphOf(part: Fields): string {
  if (isVideo(part) || toRows(part["table"]).length > 0) return "";
  const components = toRows(part["components"]).map(paragraphOf);
  const text = joinLines([firstText(part, "text"), ...components]);
  return underHeading(firstText(part, "title"), text) || plainMarkdown(part["markdown"]);
}

function linksOf(part: Fields): RawLink[] {
  const own = isVideo(part) ? [toCitedLink(part)] : [];
  return [
    ...own,
    ...citedBy(part),
    ...toRows(part["links"]).map(toCitedLink),
    ...toRows(part["components"]).flatMap(linksOf),
  ];
}

function citedBy(part: Fields): RawLink[] {
  return toRows(part["references"]).map(toCitedLink);
}

function toCitedLink(row: Fields): RawLink {
  const title = firstText(row, "title", "source", "domain");
  const texts = new Set([firstText(row, "source"), formatDate(row), firstText(row, "text", "snippet", "description")]);
  texts.delete(title);
  return { title, url: firstText(row, "url"), description: joinWithDots(...texts) };
}

function isVideo(part: Fields): boolean {
  return part["type"] === "ai_overview_video_element";
}

/** For a part without a text: its Markdown without pictures, emphasis and the addresses of its links. */
function plainMarkdown(markdown: unknown): string {
  if (typeof markdown !== "string") return "";
  // No part of an address or a name matches a bracket, which keeps the time linear.
  const text = markdown.replace(/!\[[^[\]]*\]\([^()[\]]*\)|\]\([^()[\]]*\)|\*\*|\[|^#{1,6} /gm, "");
  return joinLines(text.split("\n"));
}

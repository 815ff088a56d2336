import { joinWithDots, type RawLink, ratingText } from "../build-element.ts";
import { isObject } from "../read-rows.ts";
import { labelOf, Row, shownTexts, tableLine, toMembers, toRows, toText } from "./fields.ts";

/** Lists of lists in a block of an unknown kind. */
const depthMax = 4;
const titleFields = ["title", "name", "question", "query", "text", "link_text"];
const addressFields = ["link", "website", "product_link", "redirect_link", "video_link"];

/** The details that are displayed first, in this order. All others follow in the order of the answer. */
const generalDetails = ["price", "old_price", "original_price", "source", "channel", "date", "duration", "snippet"];

export function titleOf(row: Row): string {
  return row.first(...titleFields);
}

/** The address of the page that a row leads to. */
export function urlOf(row: Row): string {
  return row.first(...addressFields);
}

/** `4.5 (1,200)`; `(1,200)` if it has only a number of reviews. */
export function ratingOf(row: Row): string {
  return ratingText(row.text("rating"), row.first("reviews", "review_count", "votes"));
}

/** These details, and then everything else that the page displays of the row, each once. */
export function describe(row: Row, details: readonly string[], title = ""): string {
  const others = row.rest().flatMap(([name, value]) => shownTexts(name, value));
  const texts = new Set([...details, ...others]);
  texts.delete(title);
  return joinWithDots(...texts);
}

/** What a panel, or an element of an unknown kind, displays: facts, and members that have an address. */
export type Content = { lines: string[]; links: RawLink[] };

/** The content of the fields that nothing has read yet. */
export function restOf(row: Row, depth = 0): Content {
  return merge(row.rest().map(([name, value]) => contentOf(name, value, depth)));
}

/** The content of a list of rows, or of all lists in an object: some elements come in either form. */
export function contentOf(name: string, value: unknown, depth = 0): Content {
  if (depth > depthMax) return merge([]);
  if (Array.isArray(value)) return listContent(name, value, depth);
  if (isObject(value)) return objectContent(name, value, depth);
  return { lines: [value === true ? labelOf(name) : `${labelOf(name)}: ${toText(value)}`], links: [] };
}

function listContent(name: string, list: readonly unknown[], depth: number): Content {
  const members = toMembers(list);
  const texts = members.map(toText).filter((text) => text !== "");
  const lines = texts.length === 0 ? [] : [`${labelOf(name)}: ${texts.join(", ")}`];
  const tables = members.filter((member) => Array.isArray(member)).map(tableLine);
  return merge([
    { lines: [...lines, ...tables], links: [] },
    ...toRows(members).map((row) => memberContent(row, depth + 1)),
  ]);
}

/** An object with an address is a link, one with lists is read list by list, and `{opens: "9", closes: "5"}` is one fact. */
function objectContent(name: string, value: unknown, depth: number): Content {
  if (urlOf(new Row(value)) !== "") return memberContent(new Row(value), depth);
  const row = new Row(value);
  return row.rest().some(([, part]) => typeof part === "object")
    ? restOf(row, depth + 1)
    : { lines: shownTexts(name, value), links: [] };
}

/** A row with an address is a link. One without is a line, or the heading of the rows within it that have one. */
function memberContent(row: Row, depth: number): Content {
  const title = titleOf(row);
  const url = urlOf(row);
  const parts = url === "" && depth <= depthMax ? row.rest().filter(([, value]) => hasAddress(value)) : [];
  row.skip(...parts.map(([name]) => name));
  const rating = ratingOf(row);
  const description = describe(row, [...generalDetails.map((name) => row.text(name)), rating], title);
  if (url !== "") return { lines: [], links: [{ title, url, description }] };
  const inner = merge(parts.map(([name, value]) => contentOf(name, value, depth + 1)));
  const heading = joinWithDots(title, description);
  const named = inner.links.filter((link) => link.title !== "");
  if (named.length > 0) {
    const links = named.map((link) => ({ ...link, description: joinWithDots(heading, link.description ?? "") }));
    return { lines: inner.lines, links };
  }
  if (description === "" && title !== "") return { lines: inner.lines, links: [{ title }] };
  return { lines: [heading, ...inner.lines].filter((line) => line !== ""), links: [] };
}

function merge(contents: readonly Content[]): Content {
  return { lines: contents.flatMap(({ lines }) => lines), links: contents.flatMap(({ links }) => links) };
}

function hasAddress(value: unknown): boolean {
  return toRows(value).some((row) => urlOf(row) !== "");
}

import type { ResultType } from "../../../shared/results.ts";
import { buildElement, headingCharactersMax, joinLines, type RawLink } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { readTextBlocks } from "./panels.ts";
import { isObject } from "../read-rows.ts";
import {
  describe,
  ratingOf,
  restOf,
  Row,
  tableLine,
  titleOf,
  toMembers,
  toRows,
  toTexts,
  urlOf,
  withoutDirectionMarks,
} from "./fields.ts";
import { toSiteLinks } from "./organic-results.ts";

/** A member as a link, with the links within it. */
type ToLink = (row: Row) => RawLink | RawLink[];

/** An element whose members are links. Its members come as a list, or as lists in an object with a title of its own. */
export function group(type: ResultType, toLink: ToLink): (value: unknown) => Element[] | undefined {
  return (value) => {
    const own = new Row(value);
    const members = isObject(value) ? listsOf(own) : membersOf(value);
    if (members.length === 0) return undefined;
    const title = own.text("title");
    const { lines, links } = restOf(own);
    return [buildElement(type, { title, bottom: lines, siteLinks: [...members.flatMap(toLink), ...links] })];
  };
}

/** Like {@link group}, but some members are carousels: lists of members with a heading. */
export function groupOfCarousels(type: ResultType, toLink: ToLink): (value: unknown) => Element[] | undefined {
  return (value) => {
    const parts = membersOf(value).map((row) => ({ row, inner: innerMembers(row) }));
    if (parts.every(({ inner }) => inner.length === 0)) return group(type, toLink)(value);
    const siteLinks = parts.flatMap(({ row, inner }) => (inner.length === 0 ? [row] : inner)).flatMap(toLink);
    const headings = parts.flatMap(({ row, inner }) => (inner.length === 0 ? [] : restOf(row).lines));
    return [buildElement(type, { bottom: headings, siteLinks })];
  };
}

/** The members of a list. A text is a member with only a title. */
export function membersOf(value: unknown): Row[] {
  return toMembers(value)
    .filter((member) => isObject(member) || typeof member === "string")
    .map((member) => new Row(isObject(member) ? member : { title: member }));
}

function listsOf(own: Row): Row[] {
  return own
    .rest()
    .filter(([, value]) => Array.isArray(value))
    .flatMap(([name]) => membersOf(own.take(name)));
}

/** The members within a member that has no address itself. */
function innerMembers(row: Row): Row[] {
  if (urlOf(row) !== "") return [];
  const lists = row.rest().filter(([, value]) => toRows(value).some((inner) => urlOf(inner) !== ""));
  return lists.flatMap(([name]) => membersOf(row.take(name)));
}

/** Products by the block that they name, as a page has several: `Popular products`, `In stores nearby`. */
export function readProducts(value: unknown): Element[] | undefined {
  const products = membersOf(value).map((row) => ({ category: row.text("category"), link: productLink(row) }));
  const blocks = [...Map.groupBy(products, ({ category }) => category)];
  if (blocks.length === 0) return undefined;
  return blocks.map(([title, members]) =>
    buildElement("shopping", { title, siteLinks: members.map(({ link }) => link) }),
  );
}

export function productLink(row: Row): RawLink {
  row.skip("block_position");
  const details = ["price", "old_price", "original_price", "source"].map((name) => row.text(name));
  return linkWith(row, [...details, ratingOf(row)]);
}

export const newsLink = (row: Row): RawLink => linkWith(row, [row.text("source"), row.text("date")]);

export function videoLink(row: Row): RawLink {
  return linkWith(
    row,
    ["platform", "source", "channel", "date", "duration"].map((name) => row.text(name)),
  );
}

/** If `source` is a URL, it is the page with the image, and `link` only leads back to Google. */
export function imageLink(row: Row): RawLink {
  const title = titleOf(row);
  const source = row.text("source");
  const link = urlOf(row);
  const isUrl = /^https?:/i.test(source);
  return {
    title,
    url: isUrl ? source : link,
    description: describe(row, [isUrl ? "" : source, row.text("source_name")], title),
  };
}

/** A business leads to its own site. The directions to it are at Google. */
export function businessLink(row: Row): RawLink {
  const title = titleOf(row);
  const links = new Row(row.take("links"));
  const link = urlOf(row);
  const details = [ratingOf(row), ...["price", "type", "address", "hours", "phone"].map((name) => row.text(name))];
  return {
    title,
    url: links.text("website") || link,
    description: describe(row, [...details, links.text("phone")], title),
  };
}

/** A question: its answer, then the page that it is from. Of a generated answer, that is the first of its references. */
export function questionLink(row: Row): RawLink {
  row.skip("type");
  const question = row.text("question");
  const generated = readTextBlocks(row.take("text_blocks"));
  const [reference] = toRows(row.take("references"));
  const snippet = row.text("snippet");
  const answer = [snippet, ...toTexts(row.take("list")), ...toMembers(row.take("table")).map(tableLine)];
  const title = row.text("title");
  const own = row.text("link");
  const first = own === "" ? reference : undefined;
  const url = own || (first?.text("link") ?? "") || row.text("more_results_link");
  const source = [question === "" ? "" : title, ...["source", "displayed_link", "date"].map((name) => row.text(name))];
  const cited = ["title", "source", "snippet"].map((name) => first?.text(name) ?? "");
  const text = joinLines([...answer, generated.description]);
  return { title: question || title, url, description: describe(row, [text, ...source, ...cited], question) };
}

/** A search, and the things that Google lists under it, each with a search of its own. */
export function searchLink(row: Row): RawLink[] {
  row.skip("block_position");
  const items = toRows(row.take("items"));
  const link = linkWith(row, []);
  const description = (link.title ?? "").slice(0, headingCharactersMax);
  return [link, ...items.map((item) => ({ title: titleOf(item), url: urlOf(item), description }))];
}

function linkWith(row: Row, details: readonly string[]): RawLink {
  const title = titleOf(row);
  const url = urlOf(row);
  return { title, url, description: describe(row, details, title) };
}

export function adElement(row: Row): Element {
  row.skip("block_position");
  const description = row.first("description", "snippet");
  const siteLinks = toSiteLinks(row.take("sitelinks"));
  const bottom = toTexts(row.take("extensions"));
  const top = [ratingOf(row), row.text("price")];
  const title = withoutDirectionMarks(row.text("title"));
  const url = urlOf(row);
  const breadcrumb = row.text("displayed_link");
  const { lines, links } = restOf(row);
  return buildElement("paid", {
    title,
    url,
    breadcrumb,
    description,
    top,
    bottom: [...bottom, ...lines],
    siteLinks: [...siteLinks, ...links],
  });
}

import type { ResultType } from "../../results.ts";
import { buildElement, type RawElement } from "../build-element.ts";
import type { Element } from "../provider.ts";
import {
  dateOf,
  first,
  line,
  linkOf,
  linksIn,
  partsOf,
  priceOf,
  questionOf,
  type Row,
  ratingOf,
  rowsOf,
  tableOf,
  textsOf,
} from "./rows.ts";

/** An item of the page. Its type is known to be there; the rest is not. */
export type Item = Row & { readonly type: string };
type ItemReader = (item: Item) => RawElement;

const localPack = "local_pack";

/** Their types that have a name among ours. All others, and whatever will be new, are `other`, titled by themselves or their type. */
const kinds: ReadonlyMap<string, ResultType> = new Map([
  ["organic", "organic"],
  ["paid", "paid"],
  ["featured_snippet", "featured_snippet"],
  ["answer_box", "answer_box"],
  ["math_solver", "answer_box"],
  ["currency_box", "answer_box"],
  ["stocks_box", "answer_box"],
  ["dictionary", "answer_box"],
  ["ai_overview", "ai_overview"],
  ["knowledge_graph", "knowledge_graph"],
  ["people_also_ask", "people_also_ask"],
  ["questions_and_answers", "people_also_ask"],
  [localPack, "local_pack"],
  ["map", "local_pack"],
  ["local_services", "local_pack"],
  ["top_stories", "top_stories"],
  ["video", "video"],
  ["short_videos", "video"],
  ["images", "images"],
  ["shopping", "shopping"],
  ["popular_products", "shopping"],
  ["commercial_units", "shopping"],
  ["discussions_and_forums", "discussions"],
  ["perspectives", "discussions"],
  ["related_searches", "related_searches"],
  ["people_also_search", "related_searches"],
]);

/** What an item of this type tells in another way than all others. */
const readers: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ["organic", readListing],
  ["paid", readListing],
  ["math_solver", readMathSolver],
  ["currency_box", readCurrencyBox],
  ["ai_overview", readAiOverview],
  ["knowledge_graph", readKnowledgeGraph],
  ["people_also_ask", readQuestions],
  ["questions_and_answers", readQuestions],
]);

/** The elements of a page, in its order. A pack of businesses is told as one item each, and stands as one element. */
export function readElements(items: readonly Item[]): Element[] {
  const elements: Element[] = [];
  const pack: Item[] = [];
  const endPack = () => {
    if (pack.length > 0) elements.push(buildElement("local_pack", { siteLinks: pack.splice(0).map(linkOf) }));
  };
  for (const item of inPageOrder(items)) {
    if (item.type === localPack) {
      pack.push(item);
      continue;
    }
    endPack();
    elements.push(readElement(item));
  }
  endPack();
  return elements;
}

/** They come in order. Where they do not, their absolute ranks decide, if each has one of its own. */
function inPageOrder(items: readonly Item[]): readonly Item[] {
  const ranks = new Map(items.map((item) => [item, item["rank_absolute"]]));
  const told = new Set([...ranks.values()].filter((rank) => typeof rank === "number" && rank > 0));
  if (told.size < items.length) return items;
  return items.toSorted((a, b) => Number(ranks.get(a)) - Number(ranks.get(b)));
}

function readElement(item: Item): Element {
  const kind = kinds.get(item.type) ?? "other";
  const told = readers.get(item.type)?.(item);
  const raw = { ...readAny(item), ...told, siteLinks: told?.siteLinks ?? linksIn(item) };
  return buildElement(kind, kind === "other" ? { ...raw, title: raw.title || item.type } : raw);
}

/** The parts that mean the same in every item, its links apart: to look for those takes longer than all the rest. */
function readAny(item: Item): RawElement & { title: string } {
  const title = first(item, "title");
  const featured = first(item, "featured_title");
  return {
    title: title || featured,
    url: first(item, "url"),
    breadcrumb: first(item, "breadcrumb"),
    description: first(item, "description", "snippet") || line(...textsOf(item["text"])),
    top: [
      title && featured,
      ratingOf(item),
      priceOf(item),
      first(item, "subtitle"),
      first(item, "source"),
      ...beforeSnippet(item),
    ],
    bottom: [...partsOf(first(item, "extended_snippet")), ...textsOf(item["description_rows"]), ...tableOf(item)],
  };
}

function beforeSnippet(item: Item): string[] {
  const before = first(item, "pre_snippet");
  return before === "" ? [dateOf(item)] : partsOf(before);
}

/** Those with a text of their own stand in rows below the result, those without in one line: expanded before inline. */
function readListing(item: Item): RawElement {
  const { links, faq, ...rest } = item;
  const siteLinks = rowsOf(links).map(linkOf);
  const questions = rowsOf(rowsOf(faq)[0]?.["items"]).map((question) => first(question, "title"));
  return {
    siteLinks: [
      ...siteLinks.filter(({ description }) => description !== ""),
      ...siteLinks.filter(({ description }) => description === ""),
      ...linksIn(rest),
    ],
    ...(questions.length === 0 ? {} : { bottom: [...(readAny(item).bottom ?? []), ...questions] }),
  };
}

function readMathSolver(item: Item): RawElement {
  return {
    description: first(item, "result"),
    bottom: rowsOf(item["items"]).map((way) => first(way, "title")),
    siteLinks: rowsOf(item["links"]).map(linkOf),
  };
}

function readCurrencyBox(item: Item): RawElement {
  const amount = (value: string, currency: string) => `${first(item, value)} ${first(item, currency)}`;
  return {
    title: amount("value", "currency"),
    description: amount("converted_value", "converted_currency"),
    bottom: [],
  };
}

/** Its parts are paragraphs of one text; what they refer to are its links. */
function readAiOverview(item: Item): RawElement {
  const paragraphs = rowsOf(item["items"]).flatMap((part) => [part, ...rowsOf(part["components"])]);
  const { references, ...rest } = item;
  return {
    description: paragraphs.flatMap((part) => textsOf([part["title"], part["text"]])).join(" "),
    siteLinks: [...rowsOf(references).map(linkOf), ...linksIn(rest).filter(({ url }) => url !== "")],
  };
}

/** A panel is no link, whatever site the entity has; its site is the first of its links. Its rows are facts. */
function readKnowledgeGraph(item: Item): RawElement {
  const title = first(item, "title");
  const url = first(item, "url");
  const parts = rowsOf(item["items"]);
  const isFact = (part: Row) => part["type"] === "knowledge_graph_row_item";
  const facts = parts.filter(isFact);
  const described = parts.find((part) => part["type"] === "knowledge_graph_description_item");
  return {
    url: "",
    description: first(item, "description") || first(described, "text"),
    bottom: facts.map(factOf),
    siteLinks: [
      { title: url && title, url },
      ...linksIn({ items: parts.filter((part) => !isFact(part)) }),
      ...facts.flatMap((fact) => rowsOf(fact["links"]).map(linkOf)),
    ],
  };
}

function factOf(fact: Row): string {
  const title = first(fact, "title");
  const text = first(fact, "text");
  return title === "" || text.startsWith(title) ? text : `${title}: ${text}`;
}

function readQuestions(item: Item): RawElement {
  return { siteLinks: rowsOf(item["items"]).map(questionOf) };
}

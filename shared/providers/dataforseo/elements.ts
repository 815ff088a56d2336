import type { ResultType } from "../../results.ts";
import { buildElement, type RawElement } from "../build-element.ts";
import type { Element } from "../provider.ts";
import {
  formatDate,
  firstText,
  joinWithDots,
  toLink,
  collectLinks,
  splitAtDots,
  formatPrice,
  toQuestionLink,
  type Row,
  formatRating,
  toRows,
  tableLines,
  toTexts,
} from "./item-fields.ts";

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
    if (pack.length > 0) elements.push(buildElement("local_pack", { siteLinks: pack.splice(0).map(toLink) }));
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
  const raw = { ...readAny(item), ...told, siteLinks: told?.siteLinks ?? collectLinks(item) };
  return buildElement(kind, kind === "other" ? { ...raw, title: raw.title || item.type } : raw);
}

/** The parts that mean the same in every item, its links apart: to look for those takes longer than all the rest. */
function readAny(item: Item): RawElement & { title: string } {
  const title = firstText(item, "title");
  const featured = firstText(item, "featured_title");
  return {
    title: title || featured,
    url: firstText(item, "url"),
    breadcrumb: firstText(item, "breadcrumb"),
    description: firstText(item, "description", "snippet") || joinWithDots(...toTexts(item["text"])),
    top: [
      title && featured,
      formatRating(item),
      formatPrice(item),
      firstText(item, "subtitle"),
      firstText(item, "source"),
      ...beforeSnippet(item),
    ],
    bottom: [
      ...splitAtDots(firstText(item, "extended_snippet")),
      ...toTexts(item["description_rows"]),
      ...tableLines(item),
    ],
  };
}

function beforeSnippet(item: Item): string[] {
  const before = firstText(item, "pre_snippet");
  return before === "" ? [formatDate(item)] : splitAtDots(before);
}

/** Those with a text of their own stand in rows below the result, those without in one line: expanded before inline. */
function readListing(item: Item): RawElement {
  const { links, faq, ...rest } = item;
  const siteLinks = toRows(links).map(toLink);
  const questions = toRows(toRows(faq)[0]?.["items"]).map((question) => firstText(question, "title"));
  return {
    siteLinks: [
      ...siteLinks.filter(({ description }) => description !== ""),
      ...siteLinks.filter(({ description }) => description === ""),
      ...collectLinks(rest),
    ],
    ...(questions.length === 0 ? {} : { bottom: [...(readAny(item).bottom ?? []), ...questions] }),
  };
}

function readMathSolver(item: Item): RawElement {
  return {
    description: firstText(item, "result"),
    bottom: toRows(item["items"]).map((way) => firstText(way, "title")),
    siteLinks: toRows(item["links"]).map(toLink),
  };
}

function readCurrencyBox(item: Item): RawElement {
  const amount = (value: string, currency: string) => `${firstText(item, value)} ${firstText(item, currency)}`;
  return {
    title: amount("value", "currency"),
    description: amount("converted_value", "converted_currency"),
    bottom: [],
  };
}

/** Its parts are paragraphs of one text; what they refer to are its links. */
function readAiOverview(item: Item): RawElement {
  const paragraphs = toRows(item["items"]).flatMap((part) => [part, ...toRows(part["components"])]);
  const { references, ...rest } = item;
  return {
    description: paragraphs.flatMap((part) => toTexts([part["title"], part["text"]])).join(" "),
    siteLinks: [...toRows(references).map(toLink), ...collectLinks(rest).filter(({ url }) => url !== "")],
  };
}

/** A panel is no link, whatever site the entity has; its site is the first of its links. Its rows are facts. */
function readKnowledgeGraph(item: Item): RawElement {
  const title = firstText(item, "title");
  const url = firstText(item, "url");
  const parts = toRows(item["items"]);
  const isFact = (part: Row) => part["type"] === "knowledge_graph_row_item";
  const facts = parts.filter(isFact);
  const described = parts.find((part) => part["type"] === "knowledge_graph_description_item");
  return {
    url: "",
    description: firstText(item, "description") || firstText(described, "text"),
    bottom: facts.map(factOf),
    siteLinks: [
      { title: url && title, url },
      ...collectLinks({ items: parts.filter((part) => !isFact(part)) }),
      ...facts.flatMap((fact) => toRows(fact["links"]).map(toLink)),
    ],
  };
}

function factOf(fact: Row): string {
  const title = firstText(fact, "title");
  const text = firstText(fact, "text");
  return title === "" || text.startsWith(title) ? text : `${title}: ${text}`;
}

function readQuestions(item: Item): RawElement {
  return { siteLinks: toRows(item["items"]).map(toQuestionLink) };
}

import type { ResultType } from "../../results.ts";
import { buildElement, joinWithDots, type RawElement } from "../build-element.ts";
import type { Element } from "../provider.ts";
import {
  formatDate,
  firstText,
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

/** An item of the page. Only its type is known to exist. */
export type Item = Row & { readonly type: string };
type ItemReader = (item: Item) => RawElement;

const localPack = "local_pack";

/** DataForSEO's item types that have a type of ours. All others become `other`, with their type as title if they have none. */
const resultTypesByItemType: ReadonlyMap<string, ResultType> = new Map([
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

/** Readers for the item types whose fields differ from the common ones. */
const specialReaders: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ["organic", readListing],
  ["paid", readListing],
  ["math_solver", readMathSolver],
  ["currency_box", readCurrencyBox],
  ["ai_overview", readAiOverview],
  ["knowledge_graph", readKnowledgeGraph],
  ["people_also_ask", readQuestions],
  ["questions_and_answers", readQuestions],
]);

/** The elements of a page, in page order. DataForSEO lists each business of a local pack as an item; a pack becomes one element. */
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

/** Items usually arrive in page order. Their absolute ranks decide if every item has one and no two are equal. */
function inPageOrder(items: readonly Item[]): readonly Item[] {
  const ranks = new Map(items.map((item) => [item, item["rank_absolute"]]));
  const distinctRanks = new Set([...ranks.values()].filter((rank) => typeof rank === "number" && rank > 0));
  if (distinctRanks.size < items.length) return items;
  return items.toSorted((a, b) => Number(ranks.get(a)) - Number(ranks.get(b)));
}

function readElement(item: Item): Element {
  const type = resultTypesByItemType.get(item.type) ?? "other";
  const special = specialReaders.get(item.type)?.(item);
  const raw = { ...readCommonFields(item), ...special, siteLinks: special?.siteLinks ?? collectLinks(item) };
  return buildElement(type, type === "other" ? { ...raw, title: raw.title || item.type } : raw);
}

/** The fields that mean the same in every item. Links are read elsewhere: collecting them takes longer than all the rest. */
function readCommonFields(item: Item): RawElement & { title: string } {
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
      ...linesBeforeSnippet(item),
    ],
    bottom: [
      ...splitAtDots(firstText(item, "extended_snippet")),
      ...toTexts(item["description_rows"]),
      ...tableLines(item),
    ],
  };
}

function linesBeforeSnippet(item: Item): string[] {
  const preSnippet = firstText(item, "pre_snippet");
  return preSnippet === "" ? [formatDate(item)] : splitAtDots(preSnippet);
}

/** Organic results and ads. Site links with a description (shown as rows) come before those without (shown in one line). */
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
    ...(questions.length === 0 ? {} : { bottom: [...(readCommonFields(item).bottom ?? []), ...questions] }),
  };
}

function readMathSolver(item: Item): RawElement {
  return {
    description: firstText(item, "result"),
    bottom: toRows(item["items"]).map((solution) => firstText(solution, "title")),
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

/** The parts of an overview are paragraphs of one text. Their references become its links. */
function readAiOverview(item: Item): RawElement {
  const paragraphs = toRows(item["items"]).flatMap((part) => [part, ...toRows(part["components"])]);
  const { references, ...rest } = item;
  return {
    description: paragraphs.flatMap((part) => toTexts([part["title"], part["text"]])).join(" "),
    siteLinks: [...toRows(references).map(toLink), ...collectLinks(rest).filter(({ url }) => url !== "")],
  };
}

/** A knowledge panel has no URL of its own: the site of the entity is the first of its links. Its rows are facts. */
function readKnowledgeGraph(item: Item): RawElement {
  const title = firstText(item, "title");
  const url = firstText(item, "url");
  const parts = toRows(item["items"]);
  const isFact = (part: Row) => part["type"] === "knowledge_graph_row_item";
  const facts = parts.filter(isFact);
  const descriptionPart = parts.find((part) => part["type"] === "knowledge_graph_description_item");
  return {
    url: "",
    description: firstText(item, "description") || firstText(descriptionPart, "text"),
    bottom: facts.map(factLine),
    siteLinks: [
      { title: url && title, url },
      ...collectLinks({ items: parts.filter((part) => !isFact(part)) }),
      ...facts.flatMap((fact) => toRows(fact["links"]).map(toLink)),
    ],
  };
}

function factLine(fact: Row): string {
  const title = firstText(fact, "title");
  const text = firstText(fact, "text");
  return title === "" || text.startsWith(title) ? text : `${title}: ${text}`;
}

function readQuestions(item: Item): RawElement {
  return { siteLinks: toRows(item["items"]).map(toQuestionLink) };
}

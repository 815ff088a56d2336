import {
  buildElement,
  joinLines,
  joinWithDots,
  ratingText,
  type RawElement,
  type RawLink,
  splitLeadingDate,
} from "../build-element.ts";
import type { Fields } from "../read-rows.ts";
import type { Element } from "../provider.ts";
import { isOnGoogle, plainText, textCharactersMax } from "../sanitize.ts";
import { collectLinks, isOverview, questionLinks, readOverview, toLink } from "./links.ts";
import {
  firstText,
  formatDate,
  formatPrices,
  formatRating,
  formatTime,
  type Item,
  splitAtDots,
  tableLines,
  textsOf,
  toRows,
  toTexts,
  underHeading,
} from "./item-fields.ts";
import { type ResultType, resultTypes } from "../../../shared/results.ts";

type ItemReader = (item: Item) => RawElement;

const localPack = "local_pack";

/** Readers for the item types whose fields differ from the common ones. */
const specialReaders: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ["organic", readListing],
  ["paid", readListing],
  ["math_solver", readMathSolver],
  ["currency_box", readCurrencyBox],
  ["dictionary", readDictionary],
  ["ai_overview", readAiOverview],
  ["knowledge_graph", readKnowledgeGraph],
  ["people_also_ask", readQuestions],
  ["questions_and_answers", readQuestions],
  ["product_considerations", readQuestions],
]);

/** The elements of a page, in page order. DataForSEO lists the businesses of a local pack as items, which become one element. */
export function readElements(items: readonly Item[]): Element[] {
  const elements: Element[] = [];
  const pack: Item[] = [];
  const endPack = () => {
    const [first, ...more] = pack.splice(0);
    if (first === undefined) return;
    const siteLinks = [first, ...more].flatMap(businessLinks);
    elements.push({ ...buildElement("local_pack", { siteLinks }), ...providerRankOf(first) });
  };
  for (const item of inPageOrder(items)) {
    if (item.type === localPack) {
      pack.push(item);
      continue;
    }
    endPack();
    const element = readElement(item);
    if (element !== undefined) elements.push(element);
  }
  endPack();
  return elements;
}

/**
 * The left column, and behind it the right one, which DataForSEO ranks from 1 again: its elements have no rank on the page.
 */
function inPageOrder(items: readonly Item[]): readonly Item[] {
  const right = items.filter(isInRightColumn);
  return right.length === 0
    ? inColumnOrder(items)
    : [...inColumnOrder(items.filter((item) => !isInRightColumn(item))), ...right];
}

const isInRightColumn = ({ position }: Item) => position === "right";

/** Items usually arrive in page order. Their absolute ranks decide if every item has one and no two are equal. */
function inColumnOrder(items: readonly Item[]): readonly Item[] {
  const ranks = new Map(items.map((item) => [item, item["rank_absolute"]]));
  const distinctRanks = new Set([...ranks.values()].filter((rank) => typeof rank === "number" && rank > 0));
  if (distinctRanks.size < items.length) return items;
  return items.toSorted((a, b) => Number(ranks.get(a)) - Number(ranks.get(b)));
}

/** The link of a business, and that of the page where it takes bookings. */
function businessLinks(item: Item): RawLink[] {
  const booking = firstText(item, "booking_url");
  return [toLink(item), ...(booking === "" ? [] : [{ title: firstText(item, "title"), url: booking }])];
}

/** Undefined for an element of type `other` that shows nothing, such as `google_posts`, which has only an id. */
function readElement(item: Item): Element | undefined {
  const type = typeOf(item);
  const special = specialReaders.get(item.type)?.(item);
  const raw = { ...readCommonFields(item), ...special, siteLinks: special?.siteLinks ?? collectLinks(item) };
  const element = { ...buildElement(type, raw), ...providerRankOf(item) };
  if (type !== "other" || element.title !== "") return element;
  return showsNothing(element) ? undefined : { ...element, title: plainText(item.type) };
}

/** DataForSEO has a type for short videos, and also lists them as a carousel with this title. */
function typeOf(item: Item): ResultType {
  if (item.type === "carousel" && firstText(item, "title") === "Short videos") return "video";
  return resultTypesByItemType.get(item.type) ?? "other";
}

function showsNothing({ url, description, richSnippet: { top, bottom }, siteLinks }: Element): boolean {
  return (url || description) === "" && top.length + bottom.length + siteLinks.length === 0;
}

/** DataForSEO documents a rank of 0 for some elements on desktop pages: they have none. */
function providerRankOf(item: Item): { providerRank?: number } {
  const rank = isInRightColumn(item) ? undefined : item["rank_absolute"];
  return typeof rank === "number" && Number.isSafeInteger(rank) && rank > 0 ? { providerRank: rank } : {};
}

/** The fields that mean the same in every item. Links are read elsewhere: collecting them takes longer than all the rest. */
function readCommonFields(item: Item): RawElement & { title: string } {
  const title = firstText(item, "title");
  const featured = firstText(item, "featured_title");
  const { date, rest } = splitLeadingDate(firstText(item, "description", "snippet"));
  return {
    title: title || featured,
    url: firstText(item, "url"),
    // `10+ reactions  ·  1 year ago`
    breadcrumb: firstText(item, "breadcrumb").replaceAll(/[ \u00a0]{2,}/g, " "),
    description: rest || joinWithDots(...toTexts(item["text"])),
    top: [
      title && featured,
      formatRating(item),
      reviewsText(item),
      ...formatPrices(item),
      firstText(item, "subtitle"),
      firstText(item, "source"),
      ...linesBeforeSnippet(item, date),
    ],
    bottom: [
      ...splitAtDots(firstText(item, "extended_snippet")),
      ...toTexts(item["description_rows"]),
      ...tableLines(item),
    ],
  };
}

/** `(9,031)`, the number of reviews where it is not that of the ratings. */
function reviewsText(item: Item): string {
  const reviews = firstText(item, "reviews_count");
  if (reviews === "") return "";
  const text = ratingText("", reviews);
  return formatRating(item).endsWith(text) ? "" : text;
}

/** @param shownDate the date that the snippet itself begins with: shown in place of the same one as a point in time. */
function linesBeforeSnippet(item: Item, shownDate: string): string[] {
  const lines = splitAtDots(firstText(item, "pre_snippet"));
  if (shownDate !== "") return [...new Set([...lines.filter((line) => formatTime(line) === line), shownDate])];
  if (lines.length > 0) return lines.map(formatTime);
  // Where the breadcrumb has an age, as of a post, DataForSEO counts the timestamp back from the time of its call.
  return firstText(item, "breadcrumb").includes("·") ? [] : [formatDate(item)];
}

/** Organic results and ads. Site links with a description (shown as rows) come before those without (shown in one line). */
function readListing(item: Item): RawElement {
  const { links, faq, ...rest } = item;
  const siteLinks = toRows(links).map(toLink);
  const questions = toRows(toRows(faq)[0]?.["items"]);
  const faqLines = questions.map((row) => underHeading(firstText(row, "title"), firstText(row, "description")));
  return {
    siteLinks: [
      ...siteLinks.filter(({ description }) => description !== ""),
      ...siteLinks.filter(({ description }) => description === ""),
      ...questions.flatMap((row) => toRows(row["links"]).map(toLink)),
      ...collectLinks(rest),
    ],
    ...(questions.length === 0 ? {} : { bottom: [...(readCommonFields(item).bottom ?? []), ...faqLines] }),
  };
}

/** Each way to the solution, with its steps. */
function readMathSolver(item: Item): RawElement {
  const steps = (way: Fields) =>
    toRows(way["expanded_element"]).map((step) =>
      underHeading(firstText(step, "title"), toTexts(step["solution"]).join(", ")),
    );
  return {
    description: firstText(item, "result"),
    bottom: toRows(item["items"]).flatMap((way) => [firstText(way, "title"), ...steps(way)]),
    siteLinks: toRows(item["links"]).map(toLink),
  };
}

function readCurrencyBox(item: Item): RawElement {
  const amount = (value: string, currency: string) => `${firstText(item, value)} ${firstText(item, currency)}`;
  const [table] = toRows(item["table"]);
  const rows = Array.isArray(table?.["table_content"]) ? table["table_content"] : [];
  return {
    title: amount("value", "currency"),
    description: amount("converted_value", "converted_currency"),
    bottom: rows.map((cells) => toTexts(cells).join(" ")),
  };
}

/** The word, how it is spoken, and its meanings. */
function readDictionary(item: Item): RawElement {
  const title = firstText(item, "title");
  const keyword = firstText(item, "keyword");
  const [description = "", ...bottom] = textsOf(item, ["snippet", "text"]);
  return { title: title || keyword, top: [title && keyword], description, bottom };
}

/** The parts of an overview are paragraphs of one text, the rows of its tables lines below it, its references links. */
function readAiOverview(item: Item): RawElement {
  const { paragraphs, tableRows, links } = readOverview(item);
  return { description: joinLines(paragraphs), bottom: tableRows, siteLinks: links };
}

/** A knowledge panel has no URL of its own: the site of the entity is the first of its links. Its rows are facts. */
function readKnowledgeGraph(item: Item): RawElement {
  const title = firstText(item, "title");
  // A business without a site has a search for its reviews instead.
  const site = firstText(item, "url");
  const url = isOnGoogle(site) ? "" : site;
  const parts = toRows(item["items"]);
  const facts = parts.filter(isFact);
  const descriptions = parts.filter(isDescription);
  const generated = parts.filter(isOverview).map(readOverview);
  const others = parts.filter((part) => !isFact(part) && !isOverview(part));
  const [description = "", ...moreTexts] = textsOf(item, ["description"])
    .concat(descriptions.map((part) => firstText(part, "text")))
    .concat(generated.map(({ paragraphs }) => joinLines(paragraphs)));
  // What is cut off need not be searched: thousands of texts, each in megabytes, would take many seconds.
  const shown = (text: string) => text.slice(0, textCharactersMax);
  const shownDescription = shown(description);
  return {
    url: "",
    description,
    bottom: [
      ...moreTexts.filter((text) => !shownDescription.includes(shown(text))),
      ...generated.flatMap(({ tableRows }) => tableRows),
      ...facts.map(factLine),
    ],
    siteLinks: [
      { title: url && title, url },
      ...generated.flatMap(({ links }) => links),
      ...collectLinks({ items: others.map((part) => (isDescription(part) ? { links: part["links"] } : part)) }),
      ...facts.flatMap((fact) => toRows(fact["links"]).map(toLink)),
    ],
  };
}

function isFact({ type }: Fields): boolean {
  return type === "knowledge_graph_row_item" || type === "knowledge_graph_part_item";
}

const isDescription = ({ type }: Fields): boolean => type === "knowledge_graph_description_item";

function factLine(fact: Fields): string {
  const title = firstText(fact, "title");
  const text = firstText(fact, "text");
  return title === "" || text.startsWith(title) ? text : `${title}: ${text}`;
}

function readQuestions(item: Item): RawElement {
  return { siteLinks: questionLinks(toRows(item["items"])) };
}

/** Every item type that DataForSEO documents for Google's results, as of 2026, by our type. Any other is `other`, too. */
const itemTypes: Partial<Record<ResultType, string>> = {
  organic: "organic",
  paid: "paid",
  featured_snippet: "featured_snippet",
  answer_box: "answer_box math_solver currency_box stocks_box dictionary",
  ai_overview: "ai_overview",
  // Of the second, the line of a panel with the rating of a business.
  knowledge_graph: "knowledge_graph google_reviews",
  people_also_ask: "people_also_ask questions_and_answers",
  local_pack: "local_pack map local_services",
  top_stories: "top_stories",
  video: "video short_videos",
  images: "images",
  shopping: "shopping popular_products commercial_units",
  discussions: "discussions_and_forums perspectives",
  related_searches: "related_searches people_also_search",
  // No type of ours fits these. Like those of any other element, their members become links.
  other: `app carousel compare_sites courses events explore_brands find_results_on found_on_web google_flights google_hotels google_posts
    hotels_pack jobs mention_carousel multi_carousel podcasts product_considerations recipes refine_products scholarly_articles
    third_party_reviews top_sights twitter visual_stories`,
};
export const resultTypesByItemType: ReadonlyMap<string, ResultType> = new Map(
  resultTypes.flatMap((type) => (itemTypes[type] ?? "").split(/\s+/).map((itemType) => [itemType, type] as const)),
);

import type { ResultType } from "../../results.ts";
import { buildElement, joinWithDots, type RawLink, ratingText } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { isHiddenField, readAiOverview, readAnswerBox, readKnowledgeGraph, textOfBlocks } from "./panels.ts";
import { genericLink, membersMax, type Row, row, text, toRows } from "./row-schemas.ts";

type Features = Readonly<Record<string, unknown>>;
type FeatureReader = (value: unknown) => Element[] | undefined;

/**
 * SerpApi does not report the position of these elements. Each kind is placed where Google usually shows it: above or below
 * the organic results, or at the end of the page.
 */
const readersAbove: Record<string, FeatureReader> = {
  ads: (value) => {
    const ads = toRows(value);
    return ads.length === 0 ? undefined : ads.filter((ad) => !isAtBottom(ad)).map(adElement);
  },
  ai_overview: readAiOverview,
  answer_box: readAnswerBox,
  knowledge_graph: readKnowledgeGraph,
  shopping_results: group("shopping", productLink),
  inline_shopping_results: group("shopping", productLink),
  top_stories: group("top_stories", newsLink),
  news_results: group("top_stories", newsLink),
  local_ads: group("local_pack", businessLink),
  local_results: group("local_pack", businessLink),
};
const readersBelow: Record<string, FeatureReader> = {
  related_questions: group("people_also_ask", (question) => ({
    title: question.question || question.title,
    url: question.link || question.references[0]?.link || question.more_results_link,
    description: question.snippet || question.list.join(" ") || textOfBlocks(question.text_blocks),
  })),
  inline_images: group("images", imageLink),
  inline_videos: group("video", videoLink),
  inline_video_carousels: group("video", videoLink),
  short_videos: group("video", videoLink),
  immersive_products: readProducts,
  discussions_and_forums: group("discussions", newsLink),
  perspectives: group("discussions", newsLink),
};
const readersAtEnd: Record<string, FeatureReader> = {
  ads: (value) => toRows(value).filter(isAtBottom).map(adElement),
  related_searches: group("related_searches", ({ query, title, link }) => ({ title: query || title, url: link })),
};
/** Fields about the request instead of the page, and the organic results, which organic-results.ts reads. */
const otherFields = new Set([
  "search_metadata",
  "search_parameters",
  "search_information",
  "serp_api_data",
  "pagination",
  "serpapi_pagination",
  "error",
  "organic_results",
]);

/** The elements above the organic results. */
export function featuresAbove(features: Features): Element[] {
  return readAll(readersAbove, features);
}

/** The elements below the organic results: known kinds, then unknown kinds, then ads and related searches. */
export function featuresBelow(features: Features): Element[] {
  const isKnown = (name: string) =>
    [readersAbove, readersBelow, readersAtEnd].some((known) => Object.hasOwn(known, name));
  // The map shows the businesses of the local results and is not an element of its own.
  const isMapOfLocalResults = (name: string) => /^(local_)?map$/.test(name) && features["local_results"] !== undefined;
  const unknown = Object.keys(features).filter(
    (name) => !isKnown(name) && !otherFields.has(name) && !isMapOfLocalResults(name),
  );
  return [
    ...readAll(readersBelow, features),
    ...unknown.flatMap((name) => readOther(name, features[name])),
    ...readAll(readersAtEnd, features),
  ];
}

/** A known element in an unexpected form is read like an unknown one: a change of one element must not cost the whole page. */
function readAll(readers: Record<string, FeatureReader>, features: Features): Element[] {
  return Object.entries(readers).flatMap(([name, read]) => {
    const value = features[name];
    return read(value) ?? readOther(name, value);
  });
}

function group(type: ResultType, toLink: (member: Row) => RawLink): FeatureReader {
  return (value) => {
    const rows = toRows(value);
    return rows.length === 0 ? undefined : [buildElement(type, { siteLinks: rows.map(toLink) })];
  };
}

function isAtBottom({ block_position }: Row): boolean {
  return block_position === "bottom";
}

function adElement(ad: Row): Element {
  return buildElement("paid", {
    title: ad.title,
    url: ad.link,
    breadcrumb: ad.displayed_link,
    description: ad.description || ad.snippet,
    top: [ratingText(ad.rating, ad.reviews), ad.price],
    bottom: ad.extensions,
    siteLinks: ad.sitelinks,
  });
}

/** A page has several blocks of products, and each product names its block. */
function readProducts(value: unknown): Element[] | undefined {
  const blocks = [...Map.groupBy(toRows(value), ({ category }) => category)];
  if (blocks.length === 0) return undefined;
  return blocks.map(([title, products]) => buildElement("shopping", { title, siteLinks: products.map(productLink) }));
}

function productLink({ title, link, product_link, price, source, rating, reviews }: Row): RawLink {
  return { title, url: link || product_link, description: joinWithDots(price, source, ratingText(rating, reviews)) };
}

function newsLink({ title, link, source, date }: Row): RawLink {
  return { title, url: link, description: joinWithDots(source, date) };
}

function videoLink({ title, link, platform, source, channel, date, duration }: Row): RawLink {
  return { title, url: link, description: joinWithDots(platform || source, channel, date, duration) };
}

/** If `source` is a URL, it is the page with the image, and `link` only leads back to Google. */
function imageLink({ title, link, source, source_name }: Row): RawLink {
  const isUrl = /^https?:/i.test(source);
  return { title, url: isUrl ? source : link, description: source_name || (isUrl ? "" : source) };
}

function businessLink({ title, link, website, links, rating, reviews, price, type, address }: Row): RawLink {
  const description = joinWithDots(ratingText(rating, reviews), price, type, address);
  return { title, url: links.website || website || link, description };
}

/** An element of an unknown kind: its own texts, and its rows, or the rows of its parts, as links. */
function readOther(name: string, value: unknown): Element[] {
  const plain = text.parse(value);
  const hasFields = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  // A lone `top_stories_link` belongs to an element and is not one itself.
  if (!hasFields && (plain === "" || isHiddenField(name))) return [];
  const own = row.safeParse(value).data;
  const links = toRows(value).flatMap(genericLink);
  const linksOfParts = Array.isArray(value) ? value.slice(0, membersMax).flatMap(toRows).flatMap(genericLink) : [];
  return [
    buildElement("other", {
      title: own?.title || name,
      url: own?.link ?? "",
      description: plain || own?.snippet || own?.description || "",
      siteLinks: links.length > 0 ? links : linksOfParts,
    }),
  ];
}

import type { Element } from "../provider.ts";
import { readAiOverview } from "./ai-overview.ts";
import { isObject } from "../read-rows.ts";
import { toMembers } from "./fields.ts";
import {
  adElement,
  businessLink,
  group,
  groupOfCarousels,
  imageLink,
  membersOf,
  newsLink,
  productLink,
  questionLink,
  readProducts,
  searchLink,
  videoLink,
} from "./grouped-elements.ts";
import { readAnswerBox, readKnowledgeGraph, readOther } from "./panels.ts";

type Features = Readonly<Record<string, unknown>>;
type FeatureReader = (value: unknown) => Element[] | undefined;

const readShopping = group("shopping", productLink);

/**
 * SerpApi tells the place of ads and of some products, `top`, `right` or `bottom`, and of no other element. Each kind is placed
 * where Google usually shows it: above or below the organic results, or at the end of the page.
 */
const readersAbove: Record<string, FeatureReader> = {
  ads: (value) => (Array.isArray(value) ? readAds(value, (ad) => !isAtBottom(ad)) : undefined),
  ai_overview: readAiOverview,
  answer_box: readAnswerBox,
  answer_box_list: readAnswerBox,
  knowledge_graph: readKnowledgeGraph,
  shopping_results: readProductsAt((product) => !isAtBottom(product)),
  inline_shopping_results: readProductsAt((product) => !isAtBottom(product)),
  inline_products: readShopping,
  top_stories: group("top_stories", newsLink),
  news_results: group("top_stories", newsLink),
  local_ads: group("local_pack", businessLink),
  local_results: group("local_pack", businessLink),
};
const readersBelow: Record<string, FeatureReader> = {
  related_questions: group("people_also_ask", questionLink),
  questions_and_answers: group("people_also_ask", questionLink),
  inline_images: group("images", imageLink),
  inline_videos: group("video", videoLink),
  inline_video_carousels: groupOfCarousels("video", videoLink),
  short_videos: group("video", videoLink),
  immersive_products: readProducts,
  discussions_and_forums: group("discussions", newsLink),
  perspectives: group("discussions", newsLink),
};
const readersAtEnd: Record<string, FeatureReader> = {
  ads: (value) => readAds(value, isAtBottom),
  shopping_results: readProductsAt(isAtBottom),
  inline_shopping_results: readProductsAt(isAtBottom),
  related_searches: group("related_searches", searchLink),
  inline_people_also_search_for: group("related_searches", searchLink),
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
    return value === undefined ? [] : (read(value) ?? readOther(name, value));
  });
}

function readAds(value: unknown, isHere: (ad: unknown) => boolean): Element[] {
  return membersOf(toMembers(value).filter(isHere)).map(adElement);
}

function readProductsAt(isHere: (product: unknown) => boolean): FeatureReader {
  return (value) => {
    if (!Array.isArray(value)) return isHere(value) ? readShopping(value) : [];
    return readShopping(toMembers(value).filter(isHere)) ?? [];
  };
}

function isAtBottom(member: unknown): boolean {
  return isObject(member) && member["block_position"] === "bottom";
}

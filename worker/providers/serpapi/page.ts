import { z } from "zod";
import type { Element, Page } from "../provider.ts";
import { plainText } from "../sanitize.ts";
import { type Fields, isObject, readRows } from "../read-rows.ts";
import { membersMax, toMembers, toText } from "./fields.ts";
import { readOrganic } from "./organic-results.ts";
import { readAiOverview, readAnswerBox, readKnowledgeGraph, readOther } from "./panels.ts";
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

/** A text or a number as text; "" for anything else. */
const text = z.unknown().optional().transform(toText);
const pagination = z.object({ next: text }).optional().catch(undefined);
const searchInformation = z.object({
  total_results: z.int().min(0).catch(0),
  organic_results_state: text,
  showing_results_for: text,
  spelling_fix: text,
});
type SearchInformation = z.infer<typeof searchInformation>;
const noInformation = { total_results: 0, organic_results_state: "", showing_results_for: "", spelling_fix: "" };

const answerSchema = z
  .looseObject({})
  .refine((parts) => Object.keys(parts).length <= membersMax)
  .pipe(
    z.looseObject({
      error: z.string().optional(),
      organic_results: z
        .unknown()
        .refine((rows) => !Array.isArray(rows) || rows.length <= membersMax)
        .optional(),
      search_metadata: z.object({ status: z.string().optional().catch(undefined) }).catch({ status: undefined }),
      search_information: searchInformation.catch(noInformation),
      serpapi_pagination: pagination,
      pagination,
    }),
  );
type Answer = z.infer<typeof answerSchema>;

/** The page in the JSON of an answer; undefined if the search failed, or if there is nothing readable on the page. */
export function toPage(json: unknown, costMicroUsd: number): Page | undefined {
  const answer = answerSchema.safeParse(json).data;
  if (answer === undefined || !hasSucceeded(answer)) return undefined;
  const { organic_results: given, search_information } = answer;
  const isList = Array.isArray(given);
  const { found: organic, unreadableRows } = readRows(isList ? given : [given], (row) =>
    isList ? readOrganic(row) : undefined,
  );
  const elements = [...readAll(readersAbove, answer), ...organic, ...featuresBelow(answer)];
  if (elements.length === 0 && !isEmptyPage(answer)) return undefined;
  const searchedKeyword = searchedKeywordOf(search_information);
  return {
    elements,
    ...toTotal(answer, isList ? given.length : 0),
    costMicroUsd,
    ...(searchedKeyword !== "" && { searchedKeyword }),
    ...overviewTokenIn(answer["ai_overview"]),
    ...(unreadableRows > 0 && { unreadableRows }),
  };
}

/** The key to an AI Overview without a text of its own. */
function overviewTokenIn(overview: unknown): Pick<Page, "overviewToken"> {
  const token = isObject(overview) && overview["text_blocks"] === undefined ? overview["page_token"] : undefined;
  return typeof token === "string" ? { overviewToken: token } : {};
}

/**
 * Whether the search succeeded. An error text beside results does not matter. Without results it does, unless it says that
 * Google has none.
 */
function hasSucceeded({ organic_results, error, search_metadata }: Answer): boolean {
  const { status } = search_metadata;
  const hasRows = Array.isArray(organic_results) && organic_results.length > 0;
  if (hasRows) return status === "Success" || (status === undefined && error === undefined);
  return status === "Success" && (error === undefined || isNoResults(error));
}

/** Whether an answer without elements says that Google has no results: by its error, its state or an empty list. */
function isEmptyPage({ organic_results, error, search_information }: Answer): boolean {
  if (error !== undefined) return isNoResults(error);
  const isEmptyList = Array.isArray(organic_results) && organic_results.length === 0;
  return isEmptyList || /^fully empty$/i.test(search_information.organic_results_state);
}

const isNoResults = (error: string): boolean => /hasn't returned any results/i.test(error);

function toTotal(answer: Answer, rows: number): Pick<Page, "totalResultsCount" | "hasMore"> {
  const pages = answer.serpapi_pagination ?? answer.pagination;
  // The last page has no next page. If an answer has no pagination at all, one more request is better than too few results.
  const hasNext = pages === undefined ? rows > 0 : pages.next !== "";
  const hasMore = hasNext && (rows > 0 || answer.organic_results === undefined);
  const total = answer.search_information.total_results;
  // Sometimes the total is only the number of results on this page.
  const isTotalWrong = total < rows || (total === rows && hasMore);
  return { totalResultsCount: isTotalWrong ? 0 : total, hasMore };
}

/**
 * What Google searched instead of the keyword; "" if it only suggested another one ("Did you mean"). The state then says that
 * the results are for the exact spelling.
 */
function searchedKeywordOf(information: SearchInformation): string {
  const { organic_results_state: state, showing_results_for, spelling_fix } = information;
  if (/\bresults for exact spelling(?! but)/i.test(state)) return "";
  const fixed = /fixed spelling|spelling fix|including results/i.test(state) ? spelling_fix : "";
  return plainText(showing_results_for || fixed);
}

type FeatureReader = (value: unknown) => Element[] | undefined;

const readShopping = group("shopping", productLink);

/**
 * SerpApi states a position (`top`, `right` or `bottom`) only for ads and some products. Each other kind is placed where Google
 * usually shows it: above or below the organic results, or at the end of the page.
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
/** Fields about the request instead of the page, and the organic results. */
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

/** The elements below the organic results: known kinds, then unknown kinds, then ads and related searches. */
function featuresBelow(features: Fields): Element[] {
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

/** A known element in an unexpected form is read like an unknown one, so that a change of one element does not cost the page. */
function readAll(readers: Record<string, FeatureReader>, features: Fields): Element[] {
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

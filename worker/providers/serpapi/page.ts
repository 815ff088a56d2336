import { z } from "zod";
import type { Page } from "../provider.ts";
import { plainText } from "../sanitize.ts";
import { readRows } from "../read-rows.ts";
import { membersMax, toText } from "./fields.ts";
import { readOrganic } from "./organic-results.ts";
import { featuresAbove, featuresBelow } from "./serp-features.ts";

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
  const elements = [...featuresAbove(answer), ...organic, ...featuresBelow(answer)];
  if (elements.length === 0 && !isEmptyPage(answer)) return undefined;
  const searchedKeyword = searchedKeywordOf(search_information);
  return {
    elements,
    ...toTotal(answer, isList ? given.length : 0),
    costMicroUsd,
    ...(searchedKeyword !== "" && { searchedKeyword }),
    ...(unreadableRows > 0 && { unreadableRows }),
  };
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

/** Without any element, an answer has a page only if it says that Google has no results: in the error, the state or an empty list. */
function isEmptyPage({ organic_results, error, search_information }: Answer): boolean {
  if (error !== undefined) return isNoResults(error);
  const isEmptyList = Array.isArray(organic_results) && organic_results.length === 0;
  return isEmptyList || /^fully empty$/i.test(search_information.organic_results_state);
}

function isNoResults(error: string): boolean {
  return /hasn't returned any results/i.test(error);
}

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
 * What Google searched instead of the keyword. A suggestion ("Did you mean") is none: then the state says that the results are
 * for the exact spelling.
 */
function searchedKeywordOf(information: SearchInformation): string {
  const { organic_results_state: state, showing_results_for, spelling_fix } = information;
  if (/\bresults for exact spelling(?! but)/i.test(state)) return "";
  const fixed = /fixed spelling|spelling fix|including results/i.test(state) ? spelling_fix : "";
  return plainText(showing_results_for || fixed);
}

/** Whether a row, or what is in place of the list, holds something. */

import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../config.ts";
import { languageCodeOf } from "../../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../query/locations.ts";
import { toAccount, balanceSchema } from "../account.ts";
import { buildElement } from "../build-element.ts";
import { googleLanguageCode, googleLanguages, isLanguageListed } from "../google-language.ts";
import { googleLocationName } from "../google-location.ts";
import {
  type Account,
  type Element,
  type Failure,
  type Page,
  type PageAnswer,
  withCost,
  type Provider,
} from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { featuresAfter, featuresBefore } from "./serp-features.ts";
import {
  snippetLines,
  listOf,
  membersMax,
  emptySnippetPart,
  optionalPart,
  siteLinks,
  snippetPart,
  splitRating,
  text,
} from "./row-schemas.ts";

/** They answer in one to four seconds; what takes longer than this they have mostly given up, too. */
const callTimeoutMs = 20_000;
const organicPerPage = 10;
/** Recorded answers have up to 200 kB. */
const bodyCharactersMax = 4 * 1024 * 1024;
/** One search at the price of the smallest plan, 25 USD for 1,000. What comes from their cache within the hour is free, but not told. */
const costPerSearchMicroUsd = 25_000;

/** What makes a result has to be there; a decoration in an unexpected form is left out. */
const organicRow = z
  .object({
    title: z.string(),
    link: z.string().optional(),
    redirect_link: z.string().optional().catch(undefined),
    displayed_link: text,
    snippet: text,
    date: text,
    author: text,
    cited_by: text,
    price: text,
    rating: text,
    reviews: text,
    extensions: listOf(z.string()),
    rich_snippet: optionalPart(z.object({ top: snippetPart, bottom: snippetPart }), {
      top: emptySnippetPart,
      bottom: emptySnippetPart,
    }),
    rich_snippet_table: snippetPart,
    rich_snippet_list: listOf(z.string()),
    sitelinks: siteLinks,
  })
  .refine(({ link, redirect_link }) => (link ?? redirect_link) !== undefined);

const answerParts = z
  .looseObject({})
  .refine((parts) => Object.keys(parts).length <= membersMax)
  .pipe(
    z.looseObject({
      error: z.string().optional(),
      organic_results: z.array(z.unknown()).max(membersMax).pipe(z.array(organicRow)).optional(),
      search_metadata: z.object({ status: z.string().optional().catch(undefined) }).catch({ status: undefined }),
      search_information: z
        .object({ total_results: z.int().min(0).catch(0), organic_results_state: text })
        .catch({ total_results: 0, organic_results_state: "" }),
      serpapi_pagination: z.object({ next: text }).optional().catch(undefined),
      pagination: z.object({ next: text }).optional().catch(undefined),
    }),
  );
type AnswerParts = z.infer<typeof answerParts>;
const accountAnswer = z.object({ total_searches_left: balanceSchema });
const refusal = z.object({ error: z.string() });
const toldSearch = z.object({ search_metadata: z.object({ status: z.string() }) });

/**
 * SerpApi: GET {SERPAPI_BASE_URL}/search.json with all in the query, by their design also the key. The address of a
 * request is therefore a secret, and goes to nobody but them.
 * @throws {MissingSettings} without SERPAPI_API_KEY.
 */
export function openSerpapi(config: EngineConfig): Provider {
  const key = config.SERPAPI_API_KEY;
  if (key === undefined) throw new MissingSettings("serpapi", "SERPAPI_API_KEY");
  const base = config.SERPAPI_BASE_URL.replace(/\/+$/, "");
  const headers = { accept: "application/json" };
  return {
    name: "serpapi",
    can: { mobile: true, city: true, language: (languageCode) => isLanguageListed(languageCode, googleLanguages) },
    callTimeoutMs,
    concurrentCallsMax: config.SERPAPI_CONCURRENCY,
    request: (query, pageNumber) => {
      const parameters = new URLSearchParams({
        engine: "google",
        q: query.keyword,
        // The country goes along with every place: alone, a place loses against the country that they ask from.
        gl: countryOf(query.location).toLowerCase(),
        hl: googleLanguageCode(languageCodeOf(query.language), googleLanguages).toLowerCase(),
        ...(isFinerThanCountry(query.location) ? { location: googleLocationName(query.location) } : {}),
        device: query.device,
        start: String((pageNumber - 1) * organicPerPage),
        api_key: key,
      });
      return {
        url: `${base}/search.json?${parameters.toString()}`,
        method: "GET",
        headers,
        body: "",
      };
    },
    // Should an answer ever repeat the key, in a link to themselves say, callers must not find it in their results.
    read: (answer) => readSerpapi({ ...answer, body: answer.body.replaceAll(key, "") }),
    // Free. It repeats the key, and nothing but a number is taken from it.
    account: {
      request: { url: `${base}/account.json?api_key=${key}`, method: "GET", headers, body: "" },
      read: readAccount,
    },
  };
}

function readAccount({ status, body }: PageAnswer): Account | Failure {
  const json = parseJson(body);
  const account = status === 200 ? accountAnswer.safeParse(json).data : undefined;
  return account === undefined ? failureOf(status, json) : toAccount(account.total_searches_left, "searches left");
}

function readSerpapi({ status, body }: PageAnswer): Page | Failure {
  const json = body.length > bodyCharactersMax ? undefined : parseJson(body);
  const parts = answerParts.safeParse(json);
  const isPage = status === 200 && parts.success && hasPage(parts.data);
  return isPage ? pageOf(parts.data) : failureOf(status, json);
}

/**
 * An answer with results is one unless the search failed all the same. Without any, they have to say that Google has
 * none; mostly they do so in the field `error`, which here is none.
 */
function hasPage({ organic_results, error, search_metadata, search_information }: AnswerParts): boolean {
  const { status } = search_metadata;
  if (organic_results !== undefined && organic_results.length > 0) {
    return status === "Success" || (status === undefined && error === undefined);
  }
  if (status !== "Success") return false;
  if (error !== undefined) return /hasn't returned any results/i.test(error);
  return organic_results !== undefined || /^fully empty$/i.test(search_information.organic_results_state);
}

function pageOf(parts: AnswerParts): Page {
  const { organic_results: organic = [], search_information, serpapi_pagination, pagination } = parts;
  const pages = serpapi_pagination ?? pagination;
  // Their last page tells of no next one. Where they tell of no pages at all, asking is better than giving too little.
  const hasMore = organic.length > 0 && (pages === undefined || pages.next !== "");
  const total = search_information.total_results;
  // Now and then the total is only the number of results on the page.
  const isRefuted = total < organic.length || (total === organic.length && hasMore);
  return {
    elements: [...featuresBefore(parts), ...organic.map(organicElement), ...featuresAfter(parts)],
    totalResultsCount: isRefuted ? 0 : total,
    hasMore,
    costMicroUsd: costPerSearchMicroUsd,
  };
}

/** An empty account and too many searches an hour both come as a 429, and older answers told of no credit under 200: the sentence tells. */
function failureOf(status: number, json: unknown): Failure {
  const message = refusal.safeParse(json).data?.error ?? "";
  if (/run out of searches|credit is too low|invalid api key/i.test(message)) return { failure: "account_refused" };
  if (status === 400) return refusedOf(message);
  if (status === 401 || status === 402 || status === 403) return { failure: "account_refused" };
  if (status === 429) return { failure: "rate_limited" };
  if (status === 408 || status >= 500) return { failure: "unavailable" };
  if (status >= 400) return { failure: "request_refused" };
  return status === 200 ? failureOfSearch(json) : { failure: "unreadable" };
}

/** ``Unsupported `Atlantis` location - location parameter.``: a place, country or language that others may have. */
function refusedOf(message: string): Failure {
  const parameter = /^unsupported\b.*\b(location|gl|hl) parameter/is.exec(message)?.[1]?.toLowerCase();
  if (parameter === undefined) return { failure: "request_refused" };
  return { failure: "query_refused", field: parameter === "hl" ? "language" : "location" };
}

/** A search that succeeded is charged, whether its answer can be read here or not. */
function failureOfSearch(json: unknown): Failure {
  const status = toldSearch.safeParse(json).data?.search_metadata.status;
  if (status === "Error") return { failure: "unavailable" };
  if (status === "Queued" || status === "Processing") return { failure: "timeout" };
  return withCost({ failure: "unreadable" }, status === "Success" ? costPerSearchMicroUsd : 0);
}

function organicElement(row: z.infer<typeof organicRow>): Element {
  const top = splitRating(row.rich_snippet.top);
  // Some rows have rating and lines of their own, outside of the snippet's parts.
  const own = splitRating({
    extensions: row.extensions,
    detected_extensions: { rating: row.rating, reviews: row.reviews, votes: "" },
  });
  return buildElement("organic", {
    title: row.title,
    url: row.link ?? row.redirect_link ?? "",
    breadcrumb: row.displayed_link,
    description: row.snippet,
    top: [...new Set([top.stars || own.stars, row.price, ...top.lines, row.author, row.cited_by, row.date])],
    bottom: [
      ...snippetLines(row.rich_snippet.bottom),
      ...snippetLines(row.rich_snippet_table),
      ...row.rich_snippet_list,
      ...own.lines,
    ],
    siteLinks: row.sitelinks,
  });
}

/**
 * Serper.dev, Google Search: POST {SERPER_BASE_URL}/search with a JSON body.
 * Authentication: the key in the header X-API-KEY.
 * Cost: in credits, stated by every answer; usually 1.
 * One page of ten organic results per call. Desktop pages only. No breadcrumbs, no total count, and no positions on the page:
 * `position` counts within the organic results, and the other elements have none.
 * Wire format: from its playground and from recorded answers. Serper publishes no reference. How it reads `num` and `page`
 * today, and what it does with AI Overviews, is unverified. So pages are asked for by `page`, with the `num` of its playground.
 */
import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../../shared/config.ts";
import { organicPerPage } from "../../../shared/query/depth.ts";
import { languageCodeOf } from "../../../shared/query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../../shared/query/locations.ts";
import {
  balanceSchema,
  type Failure,
  failureOfHttpStatus,
  googleLocationName,
  type Page,
  type PageAnswer,
  type Provider,
  readingJson,
  toAccount,
  withCost,
} from "../provider.ts";
import { capabilities } from "../../../shared/capabilities/capabilities.ts";
import { googleLanguageCode, googleLanguages } from "../../../shared/capabilities/google-languages.ts";
import { prices } from "../prices.ts";
import { parseJson, plainText } from "../sanitize.ts";
import { type Fields, isObject, readRows, toFields } from "../read-rows.ts";
import { readFeatures, readOrganicRow, textIn } from "./serp-features.ts";

/** Serper states 1 to 2 s per search, and 4 s with its own retry. */
const callTimeoutMs = 10_000;
const costPerCreditMicroUsd = prices.serper.firstPageMicroUsd;

const creditsSchema = z.int().min(0);
/** Every answer to a search states its cost, even an otherwise unreadable one. */
const costSchema = z.object({ credits: creditsSchema });
const accountSchema = z.object({ balance: balanceSchema }).transform(({ balance }) => toAccount(balance, "credits"));
const errorSchema = z.object({ message: z.string() });

/** @throws {MissingSettings} without SERPER_API_KEY. */
export function openSerper(config: EngineConfig): Provider {
  const key = config.SERPER_API_KEY;
  if (key === undefined) throw new MissingSettings("serper", "SERPER_API_KEY");
  const headers = { "content-type": "application/json", accept: "application/json", "x-api-key": key };
  return {
    name: "serper",
    can: capabilities.serper,
    callTimeoutMs,
    concurrentCallsMax: config.SERPER_CONCURRENCY ?? "adaptive",
    request: (query, pageNumber) => ({
      url: `${config.SERPER_BASE_URL}/search`,
      headers,
      body: JSON.stringify({
        q: query.keyword,
        // Sent with every location: otherwise the country of Serper's own servers would outweigh the city.
        gl: countryOf(query.location).toLowerCase(),
        hl: googleLanguageCode(languageCodeOf(query.language), googleLanguages).toLowerCase(),
        ...(isFinerThanCountry(query.location) ? { location: googleLocationName(query) } : {}),
        // Google's page size since September 2025. Serper refuses a larger one on free accounts.
        num: organicPerPage,
        page: pageNumber,
      }),
    }),
    read: readPage,
    // Free, and undocumented like everything else.
    account: { request: { url: `${config.SERPER_BASE_URL}/account`, headers, body: "" }, read: readAccount },
  };
}

function readPage({ status, body }: PageAnswer): Page | Failure {
  const json = parseJson(body);
  if (status !== 200) return failureOfAnswer(status, json);
  const credits = costSchema.safeParse(json).data?.credits;
  const page = isObject(json) ? readElements(json) : undefined;
  if (page === undefined) return withCost({ failure: "unreadable" }, (credits ?? 0) * costPerCreditMicroUsd);
  return { ...page, totalResultsCount: 0, costMicroUsd: (credits ?? 1) * costPerCreditMicroUsd };
}

/** The page as far as it can be read. Undefined if nothing can be, unless Serper says that there is nothing: an empty list. */
function readElements(answer: Fields): Omit<Page, "totalResultsCount" | "costMicroUsd"> | undefined {
  const { above, below, hasKnown, unreadableRows } = readFeatures(answer);
  const list = answer["organic"];
  const rows: readonly unknown[] = Array.isArray(list) ? list : [];
  const organic = readRows(rows, (row) => readOrganicRow("organic", row));
  const elements = [...above, ...organic.found, ...below];
  const unreadable = unreadableRows + organic.unreadableRows;
  // Without the list of organic results, an unknown field may as well be the report of an error.
  if (!Array.isArray(list) && !hasKnown) return undefined;
  const isEmpty = rows.length === 0 && unreadable === 0 && !errorSchema.safeParse(answer).success;
  if (elements.length === 0 && !isEmpty) return undefined;
  const searchedKeyword = searchedKeywordOf(answer);
  return {
    elements,
    ...(searchedKeyword === "" ? {} : { searchedKeyword }),
    ...(unreadable === 0 ? {} : { unreadableRows: unreadable }),
    // Serper does not report it. Google's pages have fewer than ten results if other elements take their space, but never none.
    hasMore: rows.length > 0,
  };
}

/** Google's "Showing results for"; "" if it searched the keyword as typed. */
function searchedKeywordOf(answer: Fields): string {
  return plainText(textIn(toFields(answer["searchInformation"]), "showingResultsFor"));
}

const readAccount = readingJson((json) => accountSchema.safeParse(json).data, failureOfAnswer);

/** Only the message distinguishes an empty account from a forbidden query: both are a 400. */
function failureOfAnswer(status: number, json: unknown): Failure {
  const message = errorSchema.safeParse(json).data?.message ?? "";
  if (status === 400 && /not enough credits/i.test(message)) return { failure: "account_refused" };
  if (status === 400 && /query pattern not allowed/i.test(message)) return { failure: "query_refused" };
  return { failure: failureOfHttpStatus(status) };
}

/**
 * DataForSEO, SERP API v3, "Google Organic, Live Advanced": POST {DATAFORSEO_BASE_URL}/v3/serp/google/organic/live/advanced.
 * Authentication: HTTP Basic with login and password.
 * Cost: every answer states its own in USD. As published it is 0.002 USD for the first page, 0.0015 for each further one, and 0.002
 * for an AI Overview that Google loads later (DATAFORSEO_AI_OVERVIEW), 0.00015 for a click on a question. Failed searches may be
 * charged too.
 * One call returns the whole depth, so the first page is the only page. No limits on device, city or depth; only the
 * languages listed below.
 * Nearly every failure arrives under HTTP 200 with a status code in the body.
 * Wire format: the documentation of the DataForSEO API v3, and recorded answers.
 */
import countryCodes from "i18n-iso-countries/codes.json" with { type: "json" };
import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../../shared/config.ts";
import { depthMax, organicPerPage, pagesOf } from "../../../shared/query/depth.ts";
import { languageCodeOf } from "../../../shared/query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../../shared/query/locations.ts";
import {
  type Account,
  balanceSchema,
  type Failure,
  type FailureKind,
  failureOfHttpStatus,
  googleLocationName,
  type Page,
  type PageAnswer,
  type Provider,
  type ProviderQuery,
  toAccount,
  withCost,
} from "../provider.ts";
import { capabilities, dataForSeoLanguages } from "../../../shared/capabilities/capabilities.ts";
import { googleLanguageCode } from "../../../shared/capabilities/google-languages.ts";
import { questionClickMicroUsd, searchCostMicroUsd } from "../prices.ts";
import { parseJson, parseList, plainText } from "../sanitize.ts";
import { readElements } from "./elements.ts";
import { readableItems } from "./item-fields.ts";
import type { LocationRow } from "../../locations/listed-location.ts";
import { toLocationRows } from "../read-rows.ts";

/** DataForSEO states 6 s for a page, and up to four times that for ten. The rest of a 30 s deadline is enough for a faster provider. */
const callTimeoutMs = 25_000;
/** More items than any page of results has. Reading more would block the worker's other searches. */
const itemsMax = 5_000;
/** No answer costs this many USD: a larger number is an error at DataForSEO. */
const costUsdMax = 100;

const costSchema = z.number().min(0).max(costUsdMax).optional().catch(undefined);
const messageSchema = z.string().catch("");
const taskSchema = z.object({
  status_code: z.int(),
  status_message: messageSchema,
  cost: costSchema,
  /** The task as it was sent. */
  data: z
    .object({ depth: z.int().min(1).max(depthMax), people_also_ask_click_depth: z.int().min(0).max(4).catch(0) })
    .optional()
    .catch(undefined),
  result_count: z.int().optional().catch(undefined),
  result: z.unknown(),
});
const answerSchema = z.object({
  status_code: z.int(),
  status_message: messageSchema,
  cost: costSchema,
  tasks: z.tuple([taskSchema]).optional().catch(undefined),
});
const userDataSchema = z.tuple([z.object({ money: z.object({ balance: balanceSchema }) })]);
/** `items` is null for an empty page. `items_count` above 0 without items means that items were lost. */
const resultSchema = z.tuple([
  z.object({
    spell: z.object({ keyword: z.string(), type: z.string() }).optional().catch(undefined),
    se_results_count: z.int().min(0).catch(0),
    items_count: z.int().catch(0),
    items: z.array(z.unknown()).max(itemsMax).nullable(),
  }),
]);
/** With these corrections Google searched another keyword. With `did_you_mean` it only suggests one. */
const searchedCorrections = new Set(["showing_results_for", "including_results_for", "no_results_found_for"]);

/** @throws {MissingSettings} without DATAFORSEO_LOGIN or DATAFORSEO_PASSWORD. */
export function openDataForSeo(config: EngineConfig): Provider {
  const { DATAFORSEO_LOGIN: login, DATAFORSEO_PASSWORD: password } = config;
  if (login === undefined || password === undefined) {
    const missing = [login === undefined && "DATAFORSEO_LOGIN", password === undefined && "DATAFORSEO_PASSWORD"];
    throw new MissingSettings("dataforseo", ...missing.filter((name) => name !== false));
  }
  const base = `${config.DATAFORSEO_BASE_URL}/v3`;
  const url = `${base}/serp/google/organic/live/advanced`;
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    authorization: `Basic ${Buffer.from(`${login}:${password}`).toString("base64")}`,
  };
  // Without the surcharge DataForSEO returns only overviews that Google has in its cache.
  const clicks = config.DATAFORSEO_QUESTION_CLICKS;
  const options = {
    ...(config.DATAFORSEO_AI_OVERVIEW === "on" && { load_async_ai_overview: true }),
    ...(clicks > 0 && { people_also_ask_click_depth: clicks }),
    ...(config.DATAFORSEO_UNGROUP_RESULTS === "on" && { group_organic_results: false }),
  };
  return {
    name: "dataforseo",
    can: capabilities.dataforseo,
    callTimeoutMs,
    concurrentCallsMax: config.DATAFORSEO_CONCURRENCY,
    request: (query) => ({ url, headers, body: JSON.stringify([{ ...toTask(query), ...options }]) }),
    read: readPage,
    // Free, at most six calls per minute.
    account: { request: { url: `${base}/appendix/user_data`, headers, body: "" }, read: readAccount },
    // Free.
    locations: { request: { url: `${base}/serp/google/locations`, headers, body: "" }, read: readLocations },
  };
}

/** One task with the whole depth. DataForSEO crawls, and charges for, only as many pages as the depth needs. */
function toTask(query: ProviderQuery): object {
  const pages = pagesOf(query.depth);
  return {
    // DataForSEO percent-decodes the keyword, as if it were part of a URL.
    keyword: query.keyword.replaceAll("%", "%25").replaceAll("+", "%2B"),
    ...toLocationFields(query),
    language_code: googleLanguageCode(languageCodeOf(query.language), dataForSeoLanguages),
    device: query.device,
    depth: pages * organicPerPage,
    max_crawl_pages: pages,
  };
}

/** ISO 3166-1 reserves the numbers from 900 for private use, as for Kosovo. Google uses other numbers there. */
const privateNumberMin = 900;
const numbersByCountry = new Map(countryCodes.map(([code = "", , number = ""]) => [code, Number(number)]));

/** A country is sent as Google's number for it, 2000 + its ISO 3166-1 number, which no spelling can miss. A city is sent by name. */
function toLocationFields(query: ProviderQuery): object {
  const { location } = query;
  const number = numbersByCountry.get(countryOf(location)) ?? privateNumberMin;
  return isFinerThanCountry(location) || number >= privateNumberMin
    ? { location_name: googleLocationName(query) }
    : { location_code: 2_000 + number };
}

function readPage(answer: PageAnswer): Page | Failure {
  const read = readTask(answer);
  if ("failure" in read) return read;
  const { result, data, ...status } = read.task;
  const { depth, people_also_ask_click_depth: clicks } = data ?? {
    depth: organicPerPage,
    people_also_ask_click_depth: 0,
  };
  const publishedMicroUsd = (searchCostMicroUsd("dataforseo", pagesOf(depth)) ?? 0) + clicks * questionClickMicroUsd;
  const costMicroUsd = toMicroUsd(status.cost ?? read.answerCostUsd) ?? publishedMicroUsd;
  if (status.status_code === statusNoResults) {
    return { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd };
  }
  if (status.status_code !== statusOk) return failureOfStatus(status);
  const page = resultSchema.safeParse(result).data?.[0];
  if (page === undefined) return withCost({ failure: "unreadable" }, costMicroUsd);
  const { spell, items: rows } = page;
  const { items, unreadableRows } = readableItems(rows ?? []);
  const elements = readElements(items);
  const hasHeldItems = items.length === 0 && (page.items_count > 0 || Boolean(rows?.length));
  if (hasHeldItems || (elements.length === 0 && unreadableRows > 0)) {
    return withCost({ failure: "unreadable" }, costMicroUsd);
  }
  return {
    elements,
    totalResultsCount: page.se_results_count,
    ...(searchedCorrections.has(spell?.type ?? "") && { searchedKeyword: plainText(spell?.keyword ?? "") }),
    ...(unreadableRows > 0 && { unreadableRows }),
    hasMore: false,
    costMicroUsd,
  };
}

function readAccount(answer: PageAnswer): Account | Failure {
  const read = readTask(answer);
  if ("failure" in read) return read;
  if (read.task.status_code !== statusOk) return failureOfStatus(read.task);
  const user = userDataSchema.safeParse(read.task.result).data?.[0];
  return user === undefined ? { failure: "unreadable" } : toAccount(user.money.balance, "USD");
}

/** GET /v3/serp/google/locations has the whole list in one answer (docs.dataforseo.com/v3/serp/google/locations). */
function readLocations(answer: PageAnswer): LocationRow[] | Failure {
  const read = readTask(answer, parseList);
  if ("failure" in read) return read;
  const { result, result_count, ...status } = read.task;
  if (status.status_code !== statusOk) return failureOfStatus(status);
  // The answer says how many rows it has: fewer are a part of the list.
  if (!Array.isArray(result) || result.length !== result_count) return { failure: "unreadable" };
  return toLocationRows(result, ["location_name", "country_iso_code", "location_type"]);
}

/** The one task of an answer, whether it succeeded or failed, and the cost of the whole answer; or why there is no task. */
function readTask(
  { status: httpStatus, body }: PageAnswer,
  parse: (body: string) => unknown = parseJson,
): { task: z.infer<typeof taskSchema>; answerCostUsd: number | undefined } | Failure {
  const answer = answerSchema.safeParse(parse(body)).data;
  const outcome = answer?.status_code === statusOk ? answer.tasks?.[0] : answer;
  if (httpStatus !== 200) {
    return outcome === undefined || outcome.status_code === statusOk
      ? { failure: failureOfHttpStatus(httpStatus) }
      : failureOfStatus(outcome);
  }
  if (answer?.status_code !== statusOk || answer.tasks === undefined) {
    return outcome === undefined ? { failure: "unreadable" } : failureOfStatus(outcome);
  }
  return { task: answer.tasks[0], answerCostUsd: answer.cost };
}

const statusOk = 20_000;
/** Google has no results for this query. DataForSEO ran the search and charges for it: an empty page, not a failure. */
const statusNoResults = 40_102;
const statusInvalidField = 40_501;
const statusOutdatedLocation = 40_505;

/** How an answer or its task reports its outcome. */
type Status = { status_code: number; status_message: string; cost?: number | undefined };

/** The codes (docs.dataforseo.com/v3/appendix/errors) whose meaning their hundreds alone do not give. */
const kindsByCode: ReadonlyMap<number, FailureKind> = new Map([
  // Google did not answer DataForSEO, which has already retried and charges for each attempt.
  [40_101, "blocked"],
  // "No results" is valid only as the status of the task itself.
  [statusNoResults, "unreadable"],
  // The task was interrupted; the documentation asks to send it again.
  [40_103, "unavailable"],
  // Too many calls: per minute, of the same task per hour or day, or at the same time.
  [40_202, "rate_limited"],
  [40_205, "rate_limited"],
  [40_206, "rate_limited"],
  [40_209, "rate_limited"],
  // Not implemented: the adapter has called a wrong endpoint.
  [50_100, "request_refused"],
  // DataForSEO's own timeouts: 120 s for the engine, and a slow page.
  [50_401, "timeout"],
  [50_402, "timeout"],
]);

/** By the parameter in `Invalid Field: 'location_name'.`. Every other parameter is set by the adapter alone. */
const fieldsByParameter: ReadonlyMap<string, NonNullable<Failure["field"]>> = new Map([
  ["keyword", "keyword"],
  ["location_name", "location"],
  ["location_code", "location"],
  ["language_code", "language"],
]);

/** The failure of a status, with its cost: DataForSEO also charges for some searches that failed. */
const failureOfStatus = (status: Status): Failure => withCost(failureOfCode(status), toMicroUsd(status.cost) ?? 0);

function toMicroUsd(costUsd: number | undefined): number | undefined {
  return costUsd === undefined ? undefined : Math.round(costUsd * 1_000_000);
}

function failureOfCode({ status_code: code, status_message: message }: Status): Failure {
  if (code === statusOutdatedLocation) return { failure: "query_refused", field: "location" };
  if (code === statusInvalidField) {
    const field = fieldsByParameter.get(/invalid field: '(\w{1,30})'/i.exec(message)?.[1]?.toLowerCase() ?? "");
    return field === undefined ? { failure: "request_refused" } : { failure: "query_refused", field };
  }
  return { failure: kindsByCode.get(code) ?? kindOfHundreds(Math.floor(code / 100)) };
}

/** 401: credentials. 402: payment and account limits. Other 40x: the request. 50x: DataForSEO's own errors. */
function kindOfHundreds(hundreds: number): FailureKind {
  if (hundreds === 401 || hundreds === 402) return "account_refused";
  // 406 ("in the queue") and 201 ("task created") are never valid answers to a live task.
  if (hundreds >= 400 && hundreds < 406) return "request_refused";
  return hundreds >= 500 && hundreds < 600 ? "unavailable" : "unreadable";
}

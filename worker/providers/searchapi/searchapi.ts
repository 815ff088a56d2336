/**
 * SearchApi, Google Search API (engine `google`): GET {SEARCHAPI_BASE_URL}/api/v1/search with all parameters in the query string.
 * Authentication: `Authorization: Bearer KEY`.
 * Cost: each successful search is one credit; answers do not state it. So is an AI Overview (SEARCHAPI_AI_OVERVIEW). That each
 * page is a search of its own is unverified.
 * One page of ten organic results per call. The positions of other elements are not reported.
 * Wire format: SearchApi's documentation, and programs and answers that others have published. No call of ours has verified it.
 */
import { z } from "zod";
import { capabilities } from "../../../shared/capabilities/capabilities.ts";
import { type EngineConfig, MissingSettings } from "../../../shared/config.ts";
import { prices } from "../prices.ts";
import {
  type Account,
  balanceSchema,
  type Failure,
  failureOfHttpStatus,
  type Page,
  type PageAnswer,
  type PageRequest,
  type Provider,
  toAccount,
} from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { toPage } from "../serpapi/page.ts";
import { failureOfSearch, toParameters } from "../serpapi/serpapi.ts";
import { asSerpapi } from "./as-serpapi.ts";

/** Published answers took 1 to 4 s. */
const callTimeoutMs = 20_000;
/** Published answers have at most 100 kB, much of it small pictures. */
const bodyCharactersMax = 4 * 1024 * 1024;
const costPerSearchMicroUsd = prices.searchapi.firstPageMicroUsd;

const accountSchema = z.object({ account: z.object({ remaining_credits: balanceSchema }) });
const errorSchema = z.object({ error: z.string() });

/** @throws {MissingSettings} without SEARCHAPI_API_KEY. */
export function openSearchapi(config: EngineConfig): Provider {
  const key = config.SEARCHAPI_API_KEY;
  if (key === undefined) throw new MissingSettings("searchapi", "SEARCHAPI_API_KEY");
  const base = `${config.SEARCHAPI_BASE_URL.replace(/\/+$/, "")}/api/v1`;
  const headers = { accept: "application/json", authorization: `Bearer ${key}` };
  const get = (path: string): PageRequest => ({ url: `${base}/${path}`, method: "GET", headers, body: "" });
  // `resolved` asks for the addresses of pages instead of Google's redirects to them. It costs nothing.
  const search = (parameters: Record<string, string>) =>
    get(`search?${new URLSearchParams({ ...parameters, link: "resolved" }).toString()}`);
  return {
    name: "searchapi",
    can: capabilities.searchapi,
    callTimeoutMs,
    concurrentCallsMax: config.SEARCHAPI_CONCURRENCY ?? "adaptive",
    request: (query, pageNumber) => search({ ...toParameters(query), page: String(pageNumber) }),
    read,
    ...(config.SEARCHAPI_AI_OVERVIEW === "on" && {
      overview: { request: (token) => search({ engine: "google_ai_overview", page_token: token }), read },
    }),
    // Free.
    account: { request: get("me"), read: readAccount },
  };
}

function readAccount({ status, body }: PageAnswer): Account | Failure {
  const json = parseJson(body);
  const found = status === 200 ? accountSchema.safeParse(json).data : undefined;
  return found === undefined ? failureOfAnswer(status, json) : toAccount(found.account.remaining_credits, "credits");
}

function read({ status, body }: PageAnswer): Page | Failure {
  const json = body.length > bodyCharactersMax ? undefined : parseJson(body);
  const page = status === 200 ? toPage(asSerpapi(json), costPerSearchMicroUsd) : undefined;
  return page ?? failureOfAnswer(status, json);
}

/** Only the message distinguishes an empty account from too many searches per hour: both are a 429. */
function failureOfAnswer(status: number, json: unknown): Failure {
  if (status === 200) return failureOfSearch(json, costPerSearchMicroUsd);
  const message = errorSchema.safeParse(json).data?.error ?? "";
  const isSpent = /used all of the searches/i.test(message);
  return { failure: isSpent ? "account_refused" : failureOfHttpStatus(status) };
}

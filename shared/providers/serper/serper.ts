/**
 * Serper.dev, Google Search: POST {SERPER_BASE_URL}/search with a JSON body.
 * Authentication: the key in the header X-API-KEY.
 * Cost: in credits, stated by every answer; usually 1.
 * One page of ten organic results per call. Desktop pages only. No breadcrumbs, no total count, and no positions of other
 * elements (serp-features.ts).
 * Wire format: Serper publishes no reference. It is known from its playground and from recorded answers.
 */
import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../config.ts";
import { languageCodeOf } from "../../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../query/locations.ts";
import { balanceSchema, toAccount } from "../account.ts";
import { buildElement, ratingText } from "../build-element.ts";
import { googleLanguageCode, googleLanguages, isLanguageListed } from "../google-language.ts";
import { googleLocationName } from "../google-location.ts";
import {
  type Account,
  type Element,
  type Failure,
  type FailureKind,
  type Page,
  type PageAnswer,
  type Provider,
  withCost,
} from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { featuresAbove, featuresBelow, text } from "./serp-features.ts";

/** Serper states 1 to 2 s per search, and 4 s if it retries by itself. */
const callTimeoutMs = 10_000;
/** Google's page size since September 2025. Serper refuses a larger `num` on free accounts. */
const organicPerPage = 10;
/** One credit at the price of the smallest package, 50 USD for 50,000. */
const costPerCreditMicroUsd = 1_000;

const attributes = z.record(z.string(), text).catch({});
/** Title and link are required. Every other field is optional, and left out if it has an unexpected form. */
const organicRow = z.object({
  title: z.string(),
  link: z.string(),
  snippet: text,
  date: text.catch(""),
  price: text.catch(""),
  rating: text.catch(""),
  ratingCount: text.catch(""),
  attributes,
  sitelinks: z.array(z.object({ title: text, link: text, snippet: text })).catch([]),
});
const creditsSchema = z.int().min(0);
const pageSchema = z.looseObject({ organic: z.array(organicRow), credits: creditsSchema.catch(1) });
/** The cost of an answer that is otherwise unreadable. */
const costSchema = z.object({ credits: creditsSchema });
const accountSchema = z.object({ balance: balanceSchema });
const errorSchema = z.object({ message: z.string() });

/** @throws {MissingSettings} without SERPER_API_KEY. */
export function openSerper(config: EngineConfig): Provider {
  const key = config.SERPER_API_KEY;
  if (key === undefined) throw new MissingSettings("serper", "SERPER_API_KEY");
  const base = config.SERPER_BASE_URL.replace(/\/+$/, "");
  const url = `${base}/search`;
  const headers = { "content-type": "application/json", accept: "application/json", "x-api-key": key };
  return {
    name: "serper",
    can: { mobile: false, city: true, language: (languageCode) => isLanguageListed(languageCode, googleLanguages) },
    callTimeoutMs,
    concurrentCallsMax: config.SERPER_CONCURRENCY ?? "adaptive",
    request: (query, pageNumber) => ({
      url,
      method: "POST",
      headers,
      body: JSON.stringify({
        q: query.keyword,
        // Sent with every location: otherwise the country of Serper's own servers would outweigh the city.
        gl: countryOf(query.location).toLowerCase(),
        hl: googleLanguageCode(languageCodeOf(query.language), googleLanguages).toLowerCase(),
        ...(isFinerThanCountry(query.location) ? { location: googleLocationName(query.location) } : {}),
        num: organicPerPage,
        page: pageNumber,
      }),
    }),
    read: readPage,
    // Free, and undocumented like everything else.
    account: { request: { url: `${base}/account`, method: "GET", headers, body: "" }, read: readAccount },
  };
}

function readPage({ status, body }: PageAnswer): Page | Failure {
  const json = parseJson(body);
  if (status !== 200) return { failure: failureOfAnswer(status, json) };
  const page = pageSchema.safeParse(json);
  if (!page.success) {
    const credits = costSchema.safeParse(json).data?.credits ?? 0;
    return withCost({ failure: "unreadable" }, credits * costPerCreditMicroUsd);
  }
  const { organic, credits, ...features } = page.data;
  return {
    elements: [...featuresAbove(features), ...organic.map(organicElement), ...featuresBelow(features)],
    totalResultsCount: 0,
    // Serper does not report it. Google's pages have fewer than ten results if other elements take their space, but never none.
    hasMore: organic.length > 0,
    costMicroUsd: credits * costPerCreditMicroUsd,
  };
}

function readAccount({ status, body }: PageAnswer): Account | Failure {
  const json = parseJson(body);
  const account = status === 200 ? accountSchema.safeParse(json).data : undefined;
  return account === undefined ? { failure: failureOfAnswer(status, json) } : toAccount(account.balance, "credits");
}

/** Only the message distinguishes an empty account from a forbidden query: both are a 400. */
function failureOfAnswer(status: number, json: unknown): FailureKind {
  const message = errorSchema.safeParse(json).data?.message ?? "";
  if (status === 400 && /not enough credits/i.test(message)) return "account_refused";
  if (status === 400 && /query pattern not allowed/i.test(message)) return "query_refused";
  if (status === 401 || status === 402 || status === 403) return "account_refused";
  if (status === 429) return "rate_limited";
  if (status === 408 || status >= 500) return "unavailable";
  return status >= 400 ? "request_refused" : "unreadable";
}

function organicElement(row: z.infer<typeof organicRow>): Element {
  return buildElement("organic", {
    title: row.title,
    url: row.link,
    description: row.snippet,
    top: [ratingText(row.rating, row.ratingCount), row.price, row.date],
    bottom: Object.entries(row.attributes).map(([name, value]) => `${name}: ${value}`),
    siteLinks: row.sitelinks.map(({ title, link, snippet }) => ({ title, url: link, description: snippet })),
  });
}

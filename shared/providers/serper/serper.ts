import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../config.ts";
import { languageCodeOf } from "../../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../query/locations.ts";
import { toAccount, balanceSchema } from "../account.ts";
import { buildElement, ratingText } from "../build-element.ts";
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
import { featuresAfter, featuresBefore, text } from "./serp-features.ts";

/** They tell one or two seconds, and four where they try again themselves. */
const callTimeoutMs = 10_000;
/** What Google shows on a page since September 2025; a larger `num` is refused on free accounts. */
const organicPerPage = 10;
/** One of their credits at the price of the smallest package, 50 USD for 50,000. */
const costPerCreditMicroUsd = 1_000;

const attributes = z.record(z.string(), text).catch({});
/** What makes a result has to be there; a decoration in an unexpected form is left out. */
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
const charged = z.int().min(0);
const resultsPage = z.looseObject({ organic: z.array(organicRow), credits: charged.catch(1) });
/** What an answer tells of its cost, whatever else is in it. */
const bill = z.object({ credits: charged });
const accountAnswer = z.object({ balance: balanceSchema });
const refusal = z.object({ message: z.string() });

/**
 * Serper.dev: POST {SERPER_BASE_URL}/search with the key in a header. Desktop pages only; no breadcrumbs, no total count.
 * They publish no reference: the format is known from their playground and from recorded answers.
 * @throws {MissingSettings} without SERPER_API_KEY.
 */
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
    concurrentCallsMax: config.SERPER_CONCURRENCY,
    request: (query, pageNumber) => ({
      url,
      method: "POST",
      headers,
      body: JSON.stringify({
        q: query.keyword,
        // The country goes along with every place: alone, a place loses against the country that they ask from.
        gl: countryOf(query.location).toLowerCase(),
        hl: googleLanguageCode(languageCodeOf(query.language), googleLanguages).toLowerCase(),
        ...(isFinerThanCountry(query.location) ? { location: googleLocationName(query.location) } : {}),
        num: organicPerPage,
        page: pageNumber,
      }),
    }),
    read: readSerper,
    // Undocumented like the rest, and free.
    account: { request: { url: `${base}/account`, method: "GET", headers, body: "" }, read: readAccount },
  };
}

function readSerper(answer: PageAnswer): Page | Failure {
  const json = parseJson(answer.body);
  if (answer.status !== 200) return { failure: failureOf(answer.status, refusal.safeParse(json).data?.message ?? "") };
  const page = resultsPage.safeParse(json);
  if (!page.success)
    return withCost({ failure: "unreadable" }, (bill.safeParse(json).data?.credits ?? 0) * costPerCreditMicroUsd);
  const { organic, credits, ...features } = page.data;
  return {
    elements: [...featuresBefore(features), ...organic.map(organicElement), ...featuresAfter(features)],
    totalResultsCount: 0,
    // They do not tell. Google's pages have fewer than ten rows where other elements need the room, but never none.
    hasMore: organic.length > 0,
    costMicroUsd: credits * costPerCreditMicroUsd,
  };
}

function readAccount({ status, body }: PageAnswer): Account | Failure {
  const json = parseJson(body);
  const account = status === 200 ? accountAnswer.safeParse(json).data : undefined;
  if (account === undefined) return { failure: failureOf(status, refusal.safeParse(json).data?.message ?? "") };
  return toAccount(account.balance, "credits");
}

/** An empty account and a forbidden query both come as a 400, and a wrong key as a 403; only the sentence tells. */
function failureOf(status: number, message: string): Failure["failure"] {
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

import countryCodes from "i18n-iso-countries/codes.json" with { type: "json" };
import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../config.ts";
import { languageCodeOf } from "../../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../query/locations.ts";
import type { Query } from "../../query/query.ts";
import { toAccount, balanceSchema } from "../account.ts";
import { googleLanguageCode, isLanguageListed } from "../google-language.ts";
import { googleLocationName } from "../google-location.ts";
import {
  type Account,
  type Failure,
  type FailureKind,
  type Page,
  type PageAnswer,
  withCost,
  type Provider,
} from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { type Item, readElements } from "./elements.ts";

/** They tell six seconds for a page and three to four times that for ten; what is left of 30 s is enough for a faster provider. */
const callTimeoutMs = 25_000;
const organicPerPage = 10;
/** Beyond any page of results; to read on would keep the worker from its other searches. */
const itemsMax = 5_000;
/** The first live page, 0.002 USD (dataforseo.com/pricing/serp/google-organic-serp-api), where an answer does not tell its cost. */
const costWhenUntoldMicroUsd = 2_000;
/** What no answer costs, in USD: a number above is a slip. */
const costUsdMax = 100;
const ok = 20_000;
/** Google has nothing for this query. They have looked, and charge for it: an empty page, and no failure. */
const noResults = 40_102;

/** What they take as `language_code`: their list as of 2025; GET /v3/serp/google/languages tells the newest, and costs nothing. */
const languages: ReadonlySet<string> = new Set(
  `
  ach af ak am ar az ban be bem bg bn bs ca ceb ckb crs cs da de ee el en es es-419 et eu fa fi fil fo fr fy ga
  gaa gl gu ha he hi hr ht hu hy id ig is it iw ja ka kg kk km kn ko kri ky lg ln lo loz lt lua lv mfe mg mi mk ml
  mn mr ms mt my ne nl no nso ny nyn om pa pcm pl ps pt pt-BR pt-PT qu rm rn ro ru rw sd si sk sl sn so sq sr
  sr-Latn sr-ME st sv sw ta te tg th ti tk tl tn to tr tum uk ur uz vi wo xh yo zh-CN zh-TW zu
`
    .trim()
    .split(/\s+/),
);

/** Their codes (docs.dataforseo.com/v3/appendix/errors) where the hundreds alone do not tell what to make of one. */
const kindsByCode: ReadonlyMap<number, FailureKind> = new Map([
  // Google did not answer them. They have tried again themselves, and charge for each try.
  [40_101, "blocked"],
  // "No results", anywhere but in the task that looked for them.
  [40_102, "unreadable"],
  // The task broke off; they ask to send it again.
  [40_103, "unavailable"],
  // Too many calls: in a minute, of the same task in an hour or a day, at once.
  [40_202, "rate_limited"],
  [40_205, "rate_limited"],
  [40_206, "rate_limited"],
  [40_209, "rate_limited"],
  // Not built yet: an endpoint that we should not have asked.
  [50_100, "request_refused"],
  // Theirs to wait 120 s for the engine, and for a slow page.
  [50_401, "timeout"],
  [50_402, "timeout"],
]);
const invalidField = 40_501;
const outdatedLocation = 40_505;

/** By the name of the parameter in `Invalid Field: 'location_name'.`; any other parameter is ours alone. */
const fieldsByParameter: ReadonlyMap<string, NonNullable<Failure["field"]>> = new Map([
  ["keyword", "keyword"],
  ["location_name", "location"],
  ["location_code", "location"],
  ["language_code", "language"],
]);

const cost = z.number().min(0).max(costUsdMax).optional().catch(undefined);
const words = z.string().catch("");
const task = z.object({ status_code: z.int(), status_message: words, cost, result: z.unknown() });
const envelope = z.object({
  status_code: z.int(),
  status_message: words,
  cost,
  tasks: z.tuple([task]).optional().catch(undefined),
});
const users = z.tuple([z.object({ money: z.object({ balance: balanceSchema }) })]);
/** `items` is null where there are none. A count that says otherwise means that something went missing. */
const results = z.tuple([
  z.object({
    se_results_count: z.int().min(0).catch(0),
    items_count: z.int().catch(0),
    items: z
      .array(z.looseObject({ type: z.string().min(1) }).refine(isWhole))
      .max(itemsMax)
      .nullable(),
  }),
]);

/**
 * DataForSEO: POST {DATAFORSEO_BASE_URL}/v3/serp/google/organic/live/advanced with login and password. One call brings the
 * whole depth, so the first page is the only one. Nearly every failure arrives under HTTP 200, told by status codes.
 * @throws {MissingSettings} without DATAFORSEO_LOGIN or DATAFORSEO_PASSWORD.
 */
export function openDataForSeo(config: EngineConfig): Provider {
  const { DATAFORSEO_LOGIN: login, DATAFORSEO_PASSWORD: password } = config;
  if (login === undefined || password === undefined) {
    const missing = [login === undefined && "DATAFORSEO_LOGIN", password === undefined && "DATAFORSEO_PASSWORD"];
    throw new MissingSettings("dataforseo", ...missing.filter((name) => name !== false));
  }
  const base = config.DATAFORSEO_BASE_URL.replace(/\/+$/, "");
  const url = `${base}/v3/serp/google/organic/live/advanced`;
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    authorization: `Basic ${Buffer.from(`${login}:${password}`).toString("base64")}`,
  };
  return {
    name: "dataforseo",
    can: { mobile: true, city: true, language: (languageCode) => isLanguageListed(languageCode, languages) },
    callTimeoutMs,
    concurrentCallsMax: config.DATAFORSEO_CONCURRENCY,
    request: (query) => ({ url, method: "POST", headers, body: JSON.stringify([taskOf(query)]) }),
    read: readDataForSeo,
    // Free, six times a minute.
    account: { request: { url: `${base}/v3/appendix/user_data`, method: "GET", headers, body: "" }, read: readAccount },
  };
}

/** One task with the whole depth. They crawl, and charge for, no more pages than the depth has. */
function taskOf(query: Query): object {
  const pages = Math.ceil(query.depth / organicPerPage);
  return {
    // They decode what they get, as if it came out of an address.
    keyword: query.keyword.replaceAll("%", "%25").replaceAll("+", "%2B"),
    ...placeOf(query.location),
    language_code: googleLanguageCode(languageCodeOf(query.language), languages),
    device: query.device,
    depth: pages * organicPerPage,
    max_crawl_pages: pages,
  };
}

/** From here on ISO 3166-1 leaves the numbers to everybody's own use, as for Kosovo, and Google has others. */
const privateNumberMin = 900;
const numbersByCountry = new Map(countryCodes.map(([code = "", , number = ""]) => [code, Number(number)]));

/** Countries go by Google's number, 2000 and the one of ISO 3166-1, which no spelling can miss. Finer places go by their name. */
function placeOf(location: string): object {
  const number = numbersByCountry.get(countryOf(location)) ?? privateNumberMin;
  return isFinerThanCountry(location) || number >= privateNumberMin
    ? { location_name: googleLocationName(location) }
    : { location_code: 2_000 + number };
}

function readDataForSeo(answer: PageAnswer): Page | Failure {
  const told = taskIn(answer);
  if ("failure" in told) return told;
  const { status_code, result, ...rest } = told.task;
  const costMicroUsd = microUsd(rest.cost ?? told.cost) ?? costWhenUntoldMicroUsd;
  if (status_code === noResults) return { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd };
  if (status_code !== ok) return refusalOf({ status_code, ...rest });
  const page = results.safeParse(result).data?.[0];
  if (page === undefined || (page.items_count > 0 && !page.items?.length))
    return withCost({ failure: "unreadable" }, costMicroUsd);
  return {
    elements: readElements(page.items ?? []),
    totalResultsCount: page.se_results_count,
    hasMore: false,
    costMicroUsd,
  };
}

function readAccount(answer: PageAnswer): Account | Failure {
  const told = taskIn(answer);
  if ("failure" in told) return told;
  if (told.task.status_code !== ok) return refusalOf(told.task);
  const user = users.safeParse(told.task.result).data?.[0];
  return user === undefined ? { failure: "unreadable" } : toAccount(user.money.balance, "USD");
}

/** The one task of an answer, whatever became of it, and what the whole answer cost; or why there is none. */
function taskIn(answer: PageAnswer): { task: z.infer<typeof task>; cost: number | undefined } | Failure {
  const told = envelope.safeParse(parseJson(answer.body)).data;
  const outcome = told?.status_code === ok ? told.tasks?.[0] : told;
  if (answer.status !== 200) {
    return outcome === undefined || outcome.status_code === ok ? failureOfHttp(answer.status) : refusalOf(outcome);
  }
  if (told?.status_code !== ok || told.tasks === undefined) {
    return outcome === undefined ? { failure: "unreadable" } : refusalOf(outcome);
  }
  return { task: told.tasks[0], cost: told.cost };
}

/** What makes a result has to be there. A title may be null, their word for none; one that is missing is a change of the format. */
function isWhole({ type, title, url }: Item): boolean {
  return type !== "organic" || (typeof url === "string" && (typeof title === "string" || title === null));
}

/** How an answer or its task says that it failed. */
type Refusal = { status_code: number; status_message: string };

/** They also charge for searches that failed in the end, and tell so. */
function refusalOf(outcome: Refusal & { cost?: number | undefined }): Failure {
  return withCost(failureOfCode(outcome), microUsd(outcome.cost) ?? 0);
}

function microUsd(costUsd: number | undefined): number | undefined {
  return costUsd === undefined ? undefined : Math.round(costUsd * 1_000_000);
}

/** What a status code of theirs means, 20000 and 40102 apart. */
function failureOfCode({ status_code: code, status_message: message }: Refusal): Failure {
  if (code === outdatedLocation) return { failure: "query_refused", field: "location" };
  if (code === invalidField) {
    const field = fieldsByParameter.get(/invalid field: '(\w{1,30})'/i.exec(message)?.[1]?.toLowerCase() ?? "");
    return field === undefined ? { failure: "request_refused" } : { failure: "query_refused", field };
  }
  return { failure: kindsByCode.get(code) ?? kindOfHundreds(Math.floor(code / 100)) };
}

/** What an HTTP status means whose body tells nothing of theirs: of a proxy on the way, or of an account that is refused. */
function failureOfHttp(status: number): Failure {
  if (status === 401 || status === 402 || status === 403) return { failure: "account_refused" };
  if (status === 429) return { failure: "rate_limited" };
  if (status === 408 || status >= 500) return { failure: "unavailable" };
  return { failure: status >= 400 ? "request_refused" : "unreadable" };
}

/** 401: credentials. 402: payment, limits of the account. Other 40x: the request. 50x: theirs. The rest is no answer to a live task. */
function kindOfHundreds(hundreds: number): FailureKind {
  if (hundreds === 401 || hundreds === 402) return "account_refused";
  // 406 is "in the queue", and 201 "task created": nothing that a live task is ever told.
  if (hundreds >= 400 && hundreds < 406) return "request_refused";
  return hundreds >= 500 && hundreds < 600 ? "unavailable" : "unreadable";
}

import type { ProviderName } from "../../../shared/config.ts";
import type { PageRequest } from "../../../worker/providers/provider.ts";
import { answerWith } from "../../harness/fixtures/searxng-page.ts";

/** A provider for the contract tests: its settings, and answers in the shape of recorded ones. */
export type ContractCase = {
  /** All its settings. Secrets contain the word `secret`. */
  settings: Record<string, string>;
  /** The settings that it cannot start without. */
  required: string[];
  /** Its secret as it is spelled in a request, and the part of the request that contains it. */
  secret?: { text: string; in: "url" | "headers" };
  keywordOf: (request: PageRequest) => unknown;
  /** Whether the first answer contains the whole depth. */
  isWholeDepthAtOnce?: boolean;
  /** An answer with two results and as little else as possible. */
  page: unknown;
  /** Where the results are in it, with rows that cannot be read. The sandbox has no list of them. */
  rows?: { at: string; unreadable: object[] };
  /** The answer to a query without results at Google. */
  empty: unknown;
  /** Answers with the balance of an account, if searches cost something, and the balance as operators read it. */
  account?: { path: string; answer: unknown; spent: unknown; balance: string };
  /** Its answer to a wrong key, if it has keys. */
  wrongKey?: [status: number, body: unknown];
};

const host = "https://provider.example/base";

const serper: ContractCase = {
  settings: { SERPER_API_KEY: "a-secret-of-serper", SERPER_BASE_URL: host },
  required: ["SERPER_API_KEY"],
  secret: { text: "a-secret-of-serper", in: "headers" },
  keywordOf: ({ body }) => JSON.parse(body).q,
  page: {
    searchParameters: { q: "garden pump", gl: "us", type: "search" },
    credits: 1,
    organic: rows(({ title, link }, position) => ({ title, link, snippet: "A pump.", date: "3 days ago", position })),
  },
  rows: { at: "organic", unreadable: [{ position: 4 }, { title: [] }] },
  empty: { searchParameters: { q: "garden pump" }, organic: [], credits: 1 },
  account: {
    path: "/account",
    answer: { balance: 2_492, rateLimit: 50 },
    spent: { balance: 0, rateLimit: 50 },
    balance: "2,492 credits",
  },
  wrongKey: [403, { message: "Unauthorized.", statusCode: 403 }],
};

const serpapi: ContractCase = {
  settings: { SERPAPI_API_KEY: "a-secret-of-serpapi-0123456789", SERPAPI_BASE_URL: host },
  required: ["SERPAPI_API_KEY"],
  secret: { text: "a-secret-of-serpapi-0123456789", in: "url" },
  keywordOf: ({ url }) => new URL(url).searchParams.get("q"),
  page: {
    search_metadata: { id: "1", status: "Success" },
    search_parameters: { engine: "google", q: "garden pump" },
    search_information: { total_results: 1_200, organic_results_state: "Results for exact spelling" },
    organic_results: rows(({ title, link }, position) => ({
      position,
      title,
      link,
      displayed_link: "https://pumps.example › all",
      snippet: "A pump.",
      rich_snippet: { top: { extensions: ["In stock"], detected_extensions: { rating: 4.8, reviews: 1_234 } } },
      sitelinks: { inline: [{ title: "Deep well", link: "https://pumps.example/deep" }] },
    })),
  },
  rows: { at: "organic_results", unreadable: [{ title: "Wells", snippet: "Without an address." }] },
  empty: {
    search_metadata: { id: "1", status: "Success" },
    search_information: { organic_results_state: "Fully empty" },
    error: "Google hasn't returned any results for this query.",
  },
  account: {
    path: "/account.json",
    answer: serpapiAccount(870),
    spent: serpapiAccount(0),
    balance: "870 searches left",
  },
  wrongKey: [401, { error: "Invalid API key. Your API key should be here: https://serpapi.com/manage-api-key" }],
};

const searxng: ContractCase = {
  settings: { SEARXNG_BASE_URL: host },
  required: ["SEARXNG_BASE_URL"],
  keywordOf: ({ body }) => new URLSearchParams(body).get("q"),
  page: answerWith({
    results: rows(({ title, link }, position) => ({
      url: link,
      title,
      content: "3 days ago — A pump.",
      engine: "google",
      engines: ["google"],
      positions: [position],
      template: "default.html",
      publishedDate: null,
    })),
  }),
  rows: { at: "results", unreadable: [{ engine: "google" }, { engine: 7, title: "Pumps", url: "https://a.example/" }] },
  empty: answerWith({ query: "" }),
};

const dataforseo: ContractCase = {
  settings: {
    DATAFORSEO_LOGIN: "secret@operator.example",
    DATAFORSEO_PASSWORD: "a-secret-of-dataforseo",
    DATAFORSEO_BASE_URL: host,
  },
  required: ["DATAFORSEO_LOGIN", "DATAFORSEO_PASSWORD"],
  secret: { text: Buffer.from("secret@operator.example:a-secret-of-dataforseo").toString("base64"), in: "headers" },
  // DataForSEO percent-decodes the keyword.
  keywordOf: ({ body }) => String(JSON.parse(body)[0].keyword).replaceAll("%2B", "+").replaceAll("%25", "%"),
  isWholeDepthAtOnce: true,
  page: dataForSeoAnswer({
    result: [
      {
        keyword: "garden pump",
        se_results_count: 1_200,
        items_count: 2,
        items: rows(({ title, link }, position) => ({
          type: "organic",
          rank_group: position,
          rank_absolute: position,
          domain: "www.pumps.example",
          title,
          url: link,
          breadcrumb: "https://pumps.example › all",
          description: "A pump.",
          rating: { rating_type: "Max5", value: 4.8, votes_count: 1_234, rating_max: 5 },
          links: [{ type: "link_element", title: "Deep well", description: "", url: "https://pumps.example/deep" }],
        })),
      },
    ],
  }),
  rows: {
    at: "tasks.0.result.0.items",
    unreadable: [
      { type: "organic", title: "a" },
      { type: "organic", title: "a", url: null },
      { type: "organic", url: "https://a.example/" },
      { type: "organic", url: "https://a.example/", title: ["a"] },
      { title: "a" },
      { title: "a", type: "" },
    ],
  },
  empty: dataForSeoAnswer({ status_code: 40_102, status_message: "No Search Results.", result: null }),
  account: { path: "/v3/appendix/user_data", answer: userData(12.3401), spent: userData(-0.5), balance: "12.34 USD" },
  wrongKey: [401, { status_code: 40_100, status_message: "You are not Authorized.", cost: 0, tasks: null }],
};

const searchapi: ContractCase = {
  settings: { SEARCHAPI_API_KEY: "a-secret-of-searchapi", SEARCHAPI_BASE_URL: host },
  required: ["SEARCHAPI_API_KEY"],
  secret: { text: "a-secret-of-searchapi", in: "headers" },
  keywordOf: ({ url }) => new URL(url).searchParams.get("q"),
  page: {
    search_metadata: { id: "search_1", status: "Success" },
    search_parameters: { engine: "google", q: "garden pump" },
    search_information: { query_displayed: "garden pump", total_results: 1_200 },
    organic_results: rows(({ title, link }, position) => ({
      position,
      title,
      link,
      domain: "www.pumps.example",
      displayed_link: "https://pumps.example › all",
      snippet: "A pump.",
      rich_snippet: { extensions: ["4.8", "(1,234)"], detected_extensions: { rating: 4.8, reviews: 1_234 } },
      sitelinks: { inline: [{ title: "Deep well", link: "https://pumps.example/deep" }] },
    })),
  },
  rows: { at: "organic_results", unreadable: [{ title: "Wells", snippet: "Without an address." }] },
  empty: {
    search_metadata: { id: "search_1", status: "Success" },
    search_parameters: { engine: "google", q: "garden pump" },
    error: "Google didn't return any results.",
  },
  account: {
    path: "/api/v1/me",
    answer: searchapiAccount(9_870),
    spent: searchapiAccount(0),
    balance: "9,870 credits",
  },
  wrongKey: [401, { error: "Invalid API key." }],
};

const sandbox: ContractCase = {
  settings: {},
  required: [],
  keywordOf: ({ body }) => JSON.parse(body).keyword,
  page: { keyword: "garden pump", variant: "", pageNumber: 2, isEmpty: false, isCorrected: false },
  empty: { keyword: "garden pump", variant: "", pageNumber: 1, isEmpty: true, isCorrected: false },
};

/** Every provider. The compiler demands an entry for a new one. */
export const contractCases: Record<ProviderName, ContractCase> = {
  sandbox,
  serpapi,
  serper,
  searxng,
  dataforseo,
  searchapi,
};

function rows(row: (found: { title: string; link: string }, position: number) => object): object[] {
  return [1, 2].map((number) => row({ title: `Pump ${number}`, link: `https://www.pumps.example/${number}` }, number));
}

function dataForSeoAnswer(fields: object): object {
  const task = { id: "1", status_code: 20_000, status_message: "Ok.", cost: 0.002, ...fields };
  return { status_code: 20_000, status_message: "Ok.", cost: 0.002, tasks_count: 1, tasks_error: 0, tasks: [task] };
}

/** It repeats the key. */
function serpapiAccount(searchesLeft: number): object {
  return {
    api_key: "a-secret-of-serpapi-0123456789",
    account_email: "secret@operator.example",
    plan_name: "Developer Plan",
    searches_per_month: 5_000,
    plan_searches_left: searchesLeft,
    extra_credits: 0,
    total_searches_left: searchesLeft,
  };
}

function searchapiAccount(remaining_credits: number): object {
  return {
    account: { current_month_usage: 130, monthly_allowance: 10_000, remaining_credits },
    api_usage: { searches_this_hour: 42, hourly_rate_limit: 2_000 },
  };
}

/** The answer repeats the login. */
function userData(balance: number): object {
  const money = { total: 50, balance, limits: { day: { total: 0 } }, statistics: { day: { value: "", total: 0.02 } } };
  const user = { login: "secret@operator.example", rates: { limits: {}, statistics: {} }, money, price: {} };
  return dataForSeoAnswer({ cost: 0, path: ["v3", "appendix", "user_data"], result_count: 1, result: [user] });
}

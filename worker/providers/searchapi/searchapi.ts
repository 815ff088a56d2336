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
import { balanceSchema, type Failure, type PageRequest, type Provider, readingJson, toAccount } from "../provider.ts";
import { toPage } from "../serpapi/page.ts";
import { failureOfSearch, toParameters } from "../serpapi/serpapi.ts";
import { type Fields, holdsNothing, isObject, toFields } from "../read-rows.ts";
import { toMembers } from "../serpapi/fields.ts";

/** Published answers took 1 to 4 s. */
const callTimeoutMs = 20_000;
const costPerSearchMicroUsd = prices.searchapi.firstPageMicroUsd;

const accountSchema = z
  .object({ account: z.object({ remaining_credits: balanceSchema }) })
  .transform(({ account }) => toAccount(account.remaining_credits, "credits"));
const errorSchema = z.object({ error: z.string() });

/** @throws {MissingSettings} without SEARCHAPI_API_KEY. */
export function openSearchapi(config: EngineConfig): Provider {
  const key = config.SEARCHAPI_API_KEY;
  if (key === undefined) throw new MissingSettings("searchapi", "SEARCHAPI_API_KEY");
  const base = `${config.SEARCHAPI_BASE_URL}/api/v1`;
  const headers = { accept: "application/json", authorization: `Bearer ${key}` };
  const get = (path: string): PageRequest => ({ url: `${base}/${path}`, headers, body: "" });
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

const readAccount = readingJson((json) => accountSchema.safeParse(json).data, failureOfAnswer);
const read = readingJson((json) => toPage(asSerpapi(json), costPerSearchMicroUsd), failureOfAnswer);

/** Only the message distinguishes an empty account from too many searches per hour: both are a 429. */
function failureOfAnswer(status: number, json: unknown): Failure {
  const message = errorSchema.safeParse(json).data?.error ?? "";
  const isSpent = status !== 200 && /used all of the searches/i.test(message);
  return isSpent ? { failure: "account_refused" } : failureOfSearch(status, json, costPerSearchMicroUsd);
}

/** SearchApi's answer has the parts of SerpApi's. Only what it names or nests in another way is translated here. */

/** Deeper than any block of a page. */
const depthMax = 20;

const overviewParts = ["text_blocks", "reference_links", "markdown"];

const without = (fields: Fields, ...names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

/** The answer to a search, or to the call for an AI Overview, as SerpApi would have named its parts. */
function asSerpapi(json: unknown): unknown {
  if (!isObject(json)) return json;
  const { text_blocks, reference_links } = json;
  // The answer to a call for an AI Overview is the overview itself.
  const answer =
    text_blocks === undefined
      ? json
      : { ...without(json, ...overviewParts), ai_overview: { text_blocks, reference_links } };
  const translated = Object.entries(answer).map(([name, part]) => [name, withoutRepeats(translate(name, part))]);
  return Object.fromEntries(translated);
}

function translate(name: string, part: unknown): unknown {
  if (name === "error") return toError(part);
  const each = ofRows.get(name);
  if (each !== undefined)
    return Array.isArray(part) ? part.map((row) => (isObject(row) && !holdsNothing(row) ? each(row) : row)) : part;
  return isObject(part) ? (ofParts.get(name)?.(part) ?? part) : part;
}

/** By the name of a part that is a list of rows. */
const ofRows = new Map<string, (row: Fields) => unknown>([
  ["organic_results", toOrganic],
  ["related_questions", toQuestion],
  // Its source is the name of the advertiser, also in the breadcrumb.
  ["ads", (ad) => without(ad, "source")],
  ["inline_videos", ({ length, ...video }) => ({ ...video, duration: length })],
]);

/** By the name of a part that is an object. */
const ofParts = new Map<string, (part: Fields) => unknown>([
  ["ai_overview", toOverview],
  ["answer_box", toAnswerBox],
  ["knowledge_graph", (panel) => without(panel, "knowledge_graph_type")],
  ["inline_images", ({ images }) => (Array.isArray(images) ? images.map(toImage) : undefined)],
]);

/** SearchApi says it of each engine in the same words: `Google didn't return any results.` */
function toError(error: unknown): unknown {
  return typeof error === "string" ? error.replace("didn't return any results", "hasn't returned any results") : error;
}

/** Its rich snippet has no part above or below the snippet, and the number of reviews is a line of its own: `5.0`, `(90)`. */
function toOrganic({ rich_snippet, video, ...row }: Fields): unknown {
  const { channel: author, date, length: duration } = toFields(video);
  const { extensions, detected_extensions } = toFields(rich_snippet);
  const { rating, reviews } = toFields(detected_extensions);
  const lines = toMembers(extensions).reduce<unknown[]>(joinCount, []);
  return { author, date, duration, rating, reviews, extensions: lines, ...row };
}

function joinCount(lines: unknown[], line: unknown): unknown[] {
  const last = lines.at(-1);
  const isCount = typeof line === "string" && typeof last === "string" && /^\(\d[\d.,]*[KM]?\)$/.test(line);
  return isCount && /^\d[.,]\d$/.test(last) ? [...lines.slice(0, -1), `${last} ${line}`] : [...lines, line];
}

/** What a question is read from, and what says of it only that Google had no answer, or how to search for it. */
const questionParts = ["answer", "answer_highlight", "source", "text_blocks", "reference_links"];
const unshownOfQuestion = ["search", "error", "is_ai_overview", "entity", "markdown"];

/** The page of an answer is an object. A question without an answer has only the highlighted part of one. */
function toQuestion(row: Fields): unknown {
  const { answer, answer_highlight, source, text_blocks, reference_links } = row;
  const { title, link, source: site, displayed_link } = toFields(source);
  return {
    ...without(row, ...questionParts, ...unshownOfQuestion),
    snippet: answer ?? answer_highlight,
    title,
    link,
    source: site,
    displayed_link,
    text_blocks: toBlocks(text_blocks),
    references: reference_links,
  };
}

function toOverview(overview: Fields): unknown {
  const { text_blocks, reference_links } = overview;
  const others = without(overview, "reference_links", "markdown");
  return { ...others, text_blocks: toBlocks(text_blocks), references: reference_links };
}

/** Lists are `items`, each a block with an answer. The link of a block belongs to its highlighted words. */
function toBlocks(blocks: unknown, depth = 0): unknown {
  if (!Array.isArray(blocks) || depth === depthMax) return blocks;
  return blocks.map((block) => {
    if (!isObject(block)) return block;
    const { answer, answer_highlight, link, items, ...others } = block;
    return {
      ...others,
      snippet: answer,
      ...(link !== undefined && { snippet_links: [{ text: answer_highlight, link }] }),
      list: toBlocks(items, depth + 1),
    };
  });
}

/** A box that quotes a page has it in an object of its own, and may have a heading of its own above. */
function toAnswerBox({ organic_result, title, link, ...box }: Fields): unknown {
  if (!isObject(organic_result)) return { ...box, title, link };
  const { title: ofPage, link: linkOfPage, source, displayed_link } = organic_result;
  return { ...box, title: ofPage, link: linkOfPage, source, displayed_link, about: title };
}

function toImage(image: unknown): unknown {
  if (!isObject(image)) return image;
  const { name, link } = toFields(image["source"]);
  return { ...without(image, "original"), source: link, source_name: name };
}

/** Without the domain of each row that has an address. */
function withoutRepeats(part: unknown, depth = 0): unknown {
  if (depth === depthMax) return part;
  if (Array.isArray(part)) return part.map((member) => withoutRepeats(member, depth + 1));
  if (!isObject(part)) return part;
  const kept = part["link"] === undefined ? part : without(part, "domain");
  return Object.fromEntries(Object.entries(kept).map(([name, inner]) => [name, withoutRepeats(inner, depth + 1)]));
}

/**
 * The sandbox: answers every query without a network, always in the same way, with every type of result and with sites that
 * cannot exist (`*.example`). No authentication, no cost, no limits.
 * It has its own transport in place of HTTP. Everything else is the same as for other providers, so its triggers (words in the
 * keyword such as `sandbox:error`) exercise the real timeouts, retries and failover.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { capabilities } from "../../../shared/capabilities/capabilities.ts";
import type { Element, Failure, Page, PageAnswer, PageRequest, Provider } from "../provider.ts";
import { parseJson, plainText } from "../sanitize.ts";
import type { ResultType, SiteLink } from "../../../shared/results.ts";
import { organicPerPage } from "../../../shared/query/depth.ts";
import { truncate } from "../../../shared/errors/truncate.ts";

/** Not shorter than the longest deadline, so that only the search itself can time out. */
const callTimeoutMs = 120_000;

/** `sandbox:error` as a word of the keyword; `sandbox:slow=1500` in milliseconds. */
const triggerPattern = /(?<!\S)sandbox:(empty|corrected|slow|timeout|error|refused|garbage)(?:=(\d{1,6}))?(?!\S)/g;

/**
 * Request and answer have the same body: the seed that the page is generated from, and not the page. Benchmarks use the
 * sandbox, and a page of 13 kB as JSON would cost more than everything else.
 */
const seedSchema = z.object({ keyword: z.string(), variant: z.string(), pageNumber: z.int() });
const answerSchema = seedSchema.extend({ isEmpty: z.boolean(), isCorrected: z.boolean() });

export function openSandbox(): Provider {
  return {
    name: "sandbox",
    can: capabilities.sandbox,
    callTimeoutMs,
    concurrentCallsMax: Number.POSITIVE_INFINITY,
    request: ({ keyword, location, language, device }, pageNumber) => ({
      url: "sandbox:/search",
      headers: {},
      // Without depth and target domain, so that a deeper search begins with the same first page.
      body: JSON.stringify({ keyword, variant: `${location}\n${language}\n${device}`, pageNumber }),
    }),
    read: readPage,
    transport: answerLocally,
  };
}

function readPage({ status, body }: PageAnswer): Page | Failure {
  if (status === 403) return { failure: "account_refused" };
  if (status >= 500) return { failure: "unavailable" };
  const read = answerSchema.safeParse(parseJson(body));
  if (!read.success) return { failure: "unreadable" };
  const { keyword: typed, isEmpty, isCorrected, ...rest } = read.data;
  if (isEmpty) return { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 0 };
  const keyword = typed.replace(triggerPattern, "").trim() || "sandbox";
  const page = generatePage({ keyword, ...rest });
  return isCorrected ? { ...page, searchedKeyword: keyword } : page;
}

async function answerLocally(request: PageRequest, signal: AbortSignal): Promise<PageAnswer> {
  const seed = seedSchema.parse(JSON.parse(request.body));
  const triggers = seed.keyword.includes("sandbox:") ? triggersIn(seed.keyword) : new Map<string, number>();
  if (triggers.has("slow")) await sleep(triggers.get("slow"), undefined, { signal });
  if (triggers.has("timeout")) await sleep(2 * callTimeoutMs, undefined, { signal });
  if (triggers.has("error")) return answer(503, "");
  if (triggers.has("refused")) return answer(403, "");
  if (triggers.has("garbage")) return answer(200, "<!doctype html><title>Not what was asked for</title>");
  return answer(
    200,
    JSON.stringify({ ...seed, isEmpty: triggers.has("empty"), isCorrected: triggers.has("corrected") }),
  );
}

function triggersIn(keyword: string): Map<string, number> {
  return new Map(Array.from(keyword.matchAll(triggerPattern), ([, word = "", number = "0"]) => [word, Number(number)]));
}

const answer = (status: number, body: string): PageAnswer => ({ status, headers: {}, body });

const pagesMax = 10;
const titleCharactersMax = 80;
const totalMax = 90_000_000;

const sections = ["guides", "reviews", "questions", "reports"];
const dates = ["2 days ago", "Mar 3, 2026", "Nov 18, 2025", "Jun 30, 2024"];
const firstWords = "Amber Birch Cedar Delta Fjord Granite Harbour Indigo Juniper Lantern".split(" ");
const lastWords = "Almanac Bureau Chronicle Digest Forum Gazette Guide Journal Notes Review".split(" ");

/** A site that cannot exist: the domain `.example` is reserved (RFC 2606). Every second site has the host `www.`. */
type Site = { name: string; domain: string; origin: string };
const sites: Site[] = firstWords.flatMap((first, row) =>
  lastWords.map((last, column) => {
    const domain = `${first}-${last}.example`.toLowerCase();
    return { name: `${first} ${last}`, domain, origin: `https://${(row + column) % 2 === 0 ? "www." : ""}${domain}` };
  }),
);

/** The subject of a page, its slug in URLs, and the page's random numbers: `below(n)` returns one from 0 to n - 1. */
type Subject = { words: string; slug: string; below: (maximum: number) => number };

/**
 * Generates a page from a seed; the same seed always gives the same page. The first page of a query has every type of result,
 * further pages have the types that are usual there. `variant` is the rest of the query: location, language and device.
 */
export function generatePage(seed: { keyword: string; variant: string; pageNumber: number }): Page {
  const queryHash = hash(`${seed.keyword}\n${seed.variant}`);
  const words = truncate(plainText(seed.keyword), titleCharactersMax) || "sandbox";
  const subject = { words, slug: slug(words), below: randomBelow(queryHash + seed.pageNumber) };
  const offset = (seed.pageNumber - 1) * organicPerPage;
  const organic = Array.from({ length: organicPerPage }, (_, row) => organicElement(subject, offset + row + 1));
  const isFirst = seed.pageNumber === 1;
  return {
    elements: isFirst
      ? [...elementsAbove(subject), ...organic, ...elementsBelow(subject)]
      : [paidElement(subject), ...organic, relatedSearches(subject)],
    totalResultsCount: organicPerPage * pagesMax + (queryHash % totalMax),
    hasMore: seed.pageNumber < pagesMax,
    costMicroUsd: 0,
  };
}

function organicElement(subject: Subject, position: number): Element {
  const { words, slug: topic, below } = subject;
  const site = pick(sites, below);
  const section = pick(sections, below);
  const rating = `${(30 + below(21)) / 10} (${1 + below(9)},${100 + below(900)})`;
  return element("organic", {
    title: `${words}: ${section} by ${site.name}`,
    ...urlFields(site, `${section}/${topic}-${position}`, section),
    description: `What ${site.name} found out about ${words}, with sources and answers to ${2 + below(20)} questions.`,
    richSnippet: {
      top: [below(3) === 0 ? rating : pick(dates, below)],
      bottom: below(4) === 0 ? ["Free delivery", `In stock: ${1 + below(40)}`] : [],
    },
    // As on a real page: the first result has site links, and few others do.
    siteLinks: (position === 1 ? sections : below(8) === 0 ? sections.slice(0, 2) : []).map((name) =>
      link(site, name, `${name} about ${words}`, ""),
    ),
  });
}

function elementsAbove(subject: Subject): Element[] {
  const { words, slug: topic, below } = subject;
  const about = `${words} is what this page is about.`;
  return [
    paidElement(subject),
    element("ai_overview", { description: `In short: ${about}`, siteLinks: links(subject, 2) }),
    element("featured_snippet", {
      title: `${words} explained`,
      ...urlFields(pick(sites, below), topic, topic),
      description: about,
    }),
    element("answer_box", { title: words, description: `${1 + below(1_000)}` }),
    element("knowledge_graph", {
      title: words,
      description: about,
      richSnippet: { top: ["Topic"], bottom: [`First seen: ${1900 + below(120)}`] },
      siteLinks: links(subject, 1),
    }),
    element("top_stories", { siteLinks: links(subject, 2) }),
    element("local_pack", { siteLinks: links(subject, 2) }),
  ];
}

function elementsBelow(subject: Subject): Element[] {
  const { words, below } = subject;
  const questions = [`What is ${words}?`, `How does one choose ${words}?`, `Who is good at ${words}?`];
  return [
    element("people_also_ask", { siteLinks: questions.map((title) => ({ ...randomLink(subject), title })) }),
    element("images", { siteLinks: links(subject, 2) }),
    element("video", { siteLinks: links(subject, 2) }),
    element("shopping", {
      siteLinks: links(subject, 2).map((found) => ({ ...found, description: `$${5 + below(200)}.00` })),
    }),
    element("discussions", { siteLinks: links(subject, 2) }),
    element("other", { title: "events", siteLinks: links(subject, 1) }),
    relatedSearches(subject),
  ];
}

function paidElement({ words, slug: topic, below }: Subject): Element {
  const site = pick(sites, below);
  return element("paid", {
    title: `${words} at ${site.name}`,
    ...urlFields(site, `offers/${topic}`, "offers"),
    description: `Order ${words} today, from $${5 + below(95)}.`,
  });
}

function relatedSearches({ words }: Subject): Element {
  const endings = ["for beginners", "near me", "compared", "history"];
  return element("related_searches", {
    siteLinks: endings.map((ending) => ({ title: `${words} ${ending}`, url: "", description: "" })),
  });
}

const links = (subject: Subject, count: number): SiteLink[] => Array.from({ length: count }, () => randomLink(subject));

/** The random number makes two links to the same site distinct. */
function randomLink({ words, slug: topic, below }: Subject): SiteLink {
  const site = pick(sites, below);
  return link(site, `${topic}/${below(1_000_000)}`, `${words} at ${site.name}`, `${site.name} · ${pick(dates, below)}`);
}

function link(site: Site, path: string, title: string, description: string): SiteLink {
  return { title, url: `${site.origin}/${path}`, description };
}

function urlFields({ origin, domain }: Site, path: string, crumb: string) {
  return { url: `${origin}/${path}`, domain, breadcrumb: `${domain} › ${crumb}` };
}

/** Unlike buildElement, without sanitizing: the texts of this file contain nothing to strip or check. */
function element(type: ResultType, rest: Partial<Element>): Element {
  const { title = "", url = "", domain = "", breadcrumb = "", description = "", siteLinks = [] } = rest;
  const { richSnippet = { top: [], bottom: [] } } = rest;
  return { type, title, url, domain, breadcrumb, description, richSnippet, siteLinks };
}

function pick<Value>(values: readonly Value[], below: (maximum: number) => number): Value {
  const picked = values[below(values.length)];
  if (picked === undefined) throw new Error("Cannot pick from an empty list.");
  return picked;
}

function slug(words: string): string {
  const joined = words.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return joined.replace(/^-|-$/g, "") || "sandbox";
}

/** FNV-1a, 32 bits, over UTF-16 code units. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  return state >>> 0;
}

/** Whole numbers from 0 to maximum - 1, by the generator mulberry32: small, fast, and the same on every machine. */
function randomBelow(seed: number): (maximum: number) => number {
  let state = seed;
  return (maximum) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * maximum);
  };
}

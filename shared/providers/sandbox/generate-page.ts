import type { ResultType, SiteLink } from "../../results.ts";
import { truncate } from "../../query/fuzzy-match.ts";
import type { Element, Page } from "../provider.ts";
import { plainText } from "../sanitize.ts";

const organicPerPage = 10;
const pagesMax = 10;
const titleCharactersMax = 80;
const totalMax = 90_000_000;

const sections = ["guides", "reviews", "questions", "reports"];
const dates = ["2 days ago", "Mar 3, 2026", "Nov 18, 2025", "Jun 30, 2024"];
const firstWords = ["Amber", "Birch", "Cedar", "Delta", "Fjord", "Granite", "Harbour", "Indigo", "Juniper", "Lantern"];
const lastWords = [
  "Almanac",
  "Bureau",
  "Chronicle",
  "Digest",
  "Forum",
  "Gazette",
  "Guide",
  "Journal",
  "Notes",
  "Review",
];

/** A site that cannot exist: the ending `.example` is reserved for it (RFC 2606). Every other one is at home at `www.`. */
type Site = { name: string; domain: string; origin: string };
const sites: Site[] = firstWords.flatMap((first, row) =>
  lastWords.map((last, column) => {
    const domain = `${first}-${last}.example`.toLowerCase();
    return { name: `${first} ${last}`, domain, origin: `https://${(row + column) % 2 === 0 ? "www." : ""}${domain}` };
  }),
);

/** What a page is about, its address part, and where its chances come from. */
type Subject = { words: string; slug: string; below: (maximum: number) => number };

/**
 * The page that grows from a seed, always the same: the first page of a query has every type of result, the others what
 * usually stands on them. `variant` is what else the query said about the searcher.
 */
export function generatePage(seed: { keyword: string; variant: string; pageNumber: number }): Page {
  const queryHash = hash(`${seed.keyword}\n${seed.variant}`);
  const words = truncate(plainText(seed.keyword), titleCharactersMax) || "sandbox";
  const subject = { words, slug: slug(words), below: randomBelow(queryHash + seed.pageNumber) };
  const before = (seed.pageNumber - 1) * organicPerPage;
  const organic = Array.from({ length: organicPerPage }, (_, row) => organicElement(subject, before + row + 1));
  const isFirst = seed.pageNumber === 1;
  return {
    elements: isFirst
      ? [...elementsAbove(subject), ...organic, ...elementsBelow(subject)]
      : [paid(subject), ...organic, related(subject)],
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
    ...at(site, `${section}/${topic}-${position}`, section),
    description: `What ${site.name} found out about ${words}, with sources and answers to ${2 + below(20)} questions.`,
    richSnippet: {
      top: [below(3) === 0 ? rating : pick(dates, below)],
      bottom: below(4) === 0 ? ["Free delivery", `In stock: ${1 + below(40)}`] : [],
    },
    // As on a real page: the first result has the links of its site, few others have any.
    siteLinks: (position === 1 ? sections : below(8) === 0 ? sections.slice(0, 2) : []).map((name) =>
      link(site, name, `${name} about ${words}`, ""),
    ),
  });
}

function elementsAbove(subject: Subject): Element[] {
  const { words, slug: topic, below } = subject;
  const about = `${words} is what this page is about.`;
  return [
    paid(subject),
    element("ai_overview", { description: `In short: ${about}`, siteLinks: links(subject, 2) }),
    element("featured_snippet", {
      title: `${words} explained`,
      ...at(pick(sites, below), topic, topic),
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
    element("people_also_ask", { siteLinks: questions.map((title) => ({ ...oneLink(subject), title })) }),
    element("images", { siteLinks: links(subject, 2) }),
    element("video", { siteLinks: links(subject, 2) }),
    element("shopping", {
      siteLinks: links(subject, 2).map((found) => ({ ...found, description: `$${5 + below(200)}.00` })),
    }),
    element("discussions", { siteLinks: links(subject, 2) }),
    element("other", { title: "events", siteLinks: links(subject, 1) }),
    related(subject),
  ];
}

function paid({ words, slug: topic, below }: Subject): Element {
  const site = pick(sites, below);
  return element("paid", {
    title: `${words} at ${site.name}`,
    ...at(site, `offers/${topic}`, "offers"),
    description: `Order ${words} today, from $${5 + below(95)}.`,
  });
}

function related({ words }: Subject): Element {
  const endings = ["for beginners", "near me", "compared", "history"];
  return element("related_searches", {
    siteLinks: endings.map((ending) => ({ title: `${words} ${ending}`, url: "", description: "" })),
  });
}

function links(subject: Subject, count: number): SiteLink[] {
  return Array.from({ length: count }, () => oneLink(subject));
}

/** The number keeps two links to one site apart. */
function oneLink({ words, slug: topic, below }: Subject): SiteLink {
  const site = pick(sites, below);
  return link(site, `${topic}/${below(1_000_000)}`, `${words} at ${site.name}`, `${site.name} · ${pick(dates, below)}`);
}

function link(site: Site, path: string, title: string, description: string): SiteLink {
  return { title, url: `${site.origin}/${path}`, description };
}

function at({ origin, domain }: Site, path: string, crumb: string) {
  return { url: `${origin}/${path}`, domain, breadcrumb: `${domain} › ${crumb}` };
}

/** What is written here is clean, so that nothing has to be stripped or checked as with other people's texts. */
function element(type: ResultType, rest: Partial<Element>): Element {
  const nothing = { title: "", url: "", domain: "", breadcrumb: "", description: "" };
  return { type, ...nothing, richSnippet: { top: [], bottom: [] }, siteLinks: [], ...rest };
}

function pick<Value>(values: readonly Value[], below: (maximum: number) => number): Value {
  const picked = values[below(values.length)];
  if (picked === undefined) throw new Error("There is nothing to pick from an empty list.");
  return picked;
}

function slug(words: string): string {
  const joined = words.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return joined.replace(/^-|-$/g, "") || "sandbox";
}

/** FNV-1a of 32 bits over code units. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  return state >>> 0;
}

/** Whole numbers from 0 to below a maximum, by the generator mulberry32: small, fast, the same on every machine. */
function randomBelow(seed: number): (maximum: number) => number {
  let state = seed;
  return (maximum) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * maximum);
  };
}

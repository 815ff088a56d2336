import { z } from "zod";
import type { ResultType } from "../../results.ts";
import { buildElement } from "../build-element.ts";
import type { Element } from "../provider.ts";

/** A text that may be missing, null or a number; in any other form it says nothing. */
const text = z
  .union([z.string(), z.number().transform(String)])
  .nullish()
  .catch(undefined)
  .transform((value) => value ?? "");
const texts = z.array(text).catch([]);

/** Who found a row. What the instance adds by itself is signed `plugin: …`, `answerer: …`, or not at all. */
const origin = { engine: text, engines: texts };

/** What makes a result has to be there; a decoration in an unexpected form is left out. */
const row = z.object({
  ...origin,
  engine: z.string().min(1),
  title: z.string(),
  url: z.string().nullish(),
  template: z.string().catch("default.html"),
  content: text,
  positions: z.array(z.number()).catch([]),
  publishedDate: text,
  author: text,
  metadata: text,
  length: text,
  views: text,
  price: text,
});
type Row = z.infer<typeof row>;

const infobox = z.object({
  ...origin,
  infobox: text,
  content: text,
  attributes: z.array(z.object({ label: text, value: text })).catch([]),
  urls: z.array(z.object({ title: text, url: text })).catch([]),
  relatedTopics: z.array(z.object({ suggestions: texts })).catch([]),
});
type Infobox = z.infer<typeof infobox>;
const answer = z.object({
  ...origin,
  answer: text,
  url: text,
  template: text,
  translations: z.array(z.object({ text })).catch([]),
});
type Answer = z.infer<typeof answer>;
/** What has no origin, as the mere text that an answer once was, is nobody's. */
const nobodys = { engine: "", engines: [] };

export const resultsPageSchema = z.object({
  results: z.array(row.refine(hasItsLink)),
  answers: z.array(answer.catch({ ...nobodys, answer: "", url: "", template: "", translations: [] })).catch([]),
  infoboxes: z
    .array(infobox.catch({ ...nobodys, infobox: "", content: "", attributes: [], urls: [], relatedTopics: [] }))
    .catch([]),
  suggestions: texts,
  corrections: texts,
});
export type ResultsPage = z.infer<typeof resultsPageSchema>;

type Origin = { engine: string; engines: string[] };

/** How SearXNG would draw a row is what it tells of its kind. */
const typesByTemplate = new Map<string, ResultType>([
  ["default.html", "organic"],
  ["videos.html", "video"],
  ["images.html", "images"],
  ["products.html", "shopping"],
  ["map.html", "local_pack"],
]);

const day = String.raw`\d{1,2}\.?`;
const month = String.raw`\p{L}{3,12}\.?`;
const year = String.raw`(?:19|20)\d\d`;
/** `3 days ago — `, `Apr 1, 2013 — `, `1 abr 2013 — `: Google's date, which stands in front of the snippet. */
const leadingDate = new RegExp(
  `^(\\d{1,2} (?:minute|hour|day|week|month|year)s? ago|${month} ${day}, ${year}|${day} (?:de )?${month},?(?: de)? ${year}|${year}年\\d{1,2}月\\d{1,2}日|${year}/\\d\\d?/\\d\\d?|\\d\\d?[./]\\d\\d?[./]${year}) +[—–·] +`,
  "u",
);

export function isFromGoogle({ engine }: Origin): boolean {
  return engine === "google";
}

/** Whether another engine was asked. A plugin is none. */
export function isFromOtherEngine(found: Origin): boolean {
  return [found.engine, ...found.engines].some((name) => !/^(?:google|(?:plugin|answerer):.*)?$/.test(name));
}

/** Rows in the order of Google's page. SearXNG's own is by score, where an address that came twice moves up. */
export function resultElements(rows: readonly Row[]): Element[] {
  return rows
    .map((found, index) => ({ found, position: found.positions.reduce((a, b) => Math.min(a, b), Infinity), index }))
    .toSorted((a, b) => (a.position === b.position ? a.index - b.index : a.position - b.position))
    .map(({ found }) => rowElement(found));
}

/** What stands around the rows. They do not tell where, so each kind has its usual place. */
export function surroundingElements({ answers, infoboxes, suggestions, corrections }: ResultsPage): {
  above: Element[];
  below: Element[];
} {
  return {
    above: [
      ...links("other", "corrections", corrections),
      ...answers.filter(isFromGoogle).map(answerElement),
      ...infoboxes.filter(isFromGoogle).map(infoboxElement),
    ],
    below: links("related_searches", "", suggestions),
  };
}

function hasItsLink({ template, url }: { template: string; url?: string | null | undefined }): boolean {
  return typesByTemplate.get(template) !== "organic" || (url ?? "") !== "";
}

function rowElement(found: Row): Element {
  const date = leadingDate.exec(found.content);
  return buildElement(typesByTemplate.get(found.template) ?? "other", {
    title: found.title,
    url: found.url ?? "",
    description: date === null ? found.content : found.content.slice(date[0].length),
    top: [found.price, date?.[1] ?? found.publishedDate.replace(/T.*$/, "")],
    bottom: [found.author, found.length, found.views, found.metadata],
  });
}

/** An answer of a kind that says nothing here, as weather does, is kept by its name. */
function answerElement({ answer: words, url, template, translations }: Answer): Element {
  const said = words || translations.map((translation) => translation.text).join(", ");
  if (said === "") return buildElement("other", { title: template || "answer", url });
  return buildElement(url === "" ? "answer_box" : "featured_snippet", { url, description: said });
}

/** A panel is no link: its sites are among its links, and so is what it is related to. */
function infoboxElement(panel: Infobox): Element {
  return buildElement("knowledge_graph", {
    title: panel.infobox,
    description: panel.content,
    bottom: panel.attributes.flatMap(({ label, value }) => (value === "" ? [] : [`${label}: ${value}`])),
    siteLinks: [
      ...panel.urls,
      ...panel.relatedTopics.flatMap(({ suggestions }) => suggestions.map((title) => ({ title }))),
    ],
  });
}

function links(type: ResultType, title: string, words: readonly string[]): Element[] {
  const siteLinks = words.filter((word) => word.trim() !== "").map((word) => ({ title: word }));
  return siteLinks.length === 0 ? [] : [buildElement(type, { title, siteLinks })];
}

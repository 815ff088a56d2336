import { z } from "zod";
import type { ResultType } from "../../../shared/results.ts";
import { buildElement, splitLeadingDate } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { toFields } from "../read-rows.ts";

/** A text, or a number as text; "" if it is missing, null or of another type. */
const text = z
  .union([z.string(), z.number().transform(String)])
  .nullish()
  .catch(undefined)
  .transform((value) => value ?? "");
const texts = z.array(text).catch([]);

/** The engines that returned a row. Rows that the instance adds itself have `plugin: …`, `answerer: …`, or no engine. */
const origin = { engine: text, engines: texts };

/** Only the engine is required. Every other field is left out if it has an unexpected form. */
const row = z.object({
  ...origin,
  engine: z.string().min(1),
  title: text,
  url: text,
  template: z.string().catch("default.html"),
  content: text,
  positions: z.array(z.number()).catch([]),
  publishedDate: text,
  pubdate: text,
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
  relatedTopics: z.array(z.object({ name: text, suggestions: texts })).catch([]),
});
type Infobox = z.infer<typeof infobox>;
const answer = z.object({
  ...origin,
  answer: text,
  url: text,
  template: text,
  translations: z.array(z.object({ text })).catch([]),
  /** The weather. */
  current: z.object({ summary: text }).catch({ summary: "" }),
});
type Answer = z.infer<typeof answer>;

export const resultsPageSchema = z.object({
  /** Absent if it is not a list. */
  results: z.array(z.unknown()).optional().catch(undefined),
  /** Older SearXNG returns answers as bare strings. They count as empty ones, without an engine. */
  answers: z.array(z.preprocess(toFields, answer)).catch([]),
  infoboxes: z.array(z.preprocess(toFields, infobox)).catch([]),
  suggestions: texts,
  corrections: texts,
});
export type ResultsPage = z.infer<typeof resultsPageSchema>;

export type Origin = { engine: string; engines: string[] };

/** The template that SearXNG would render a row with is the only sign of its kind. */
const typesByTemplate = new Map<string, ResultType>([
  ["default.html", "organic"],
  ["videos.html", "video"],
  ["images.html", "images"],
  ["products.html", "shopping"],
  ["map.html", "local_pack"],
]);

const isoTime = /^(\d{4}-\d\d-\d\d)[T ].*$/;

/** The names of the engines that were asked. */
export type EngineNames = ReadonlySet<string>;

const addedByInstance = /^(?:(?:plugin|answerer):.*)?$/;

/** Whether an engine returned it that was not asked. Plugins and answerers do not count. */
export function isFromOtherEngine({ engine, engines }: Origin, asked: EngineNames): boolean {
  return [engine, ...engines].some((name) => !asked.has(name) && !addedByInstance.test(name));
}

/** One row; undefined if it cannot be read. */
export function readRow(value: unknown): Row | undefined {
  const read = row.safeParse(value).data;
  return read && hasContent(read) ? read : undefined;
}

/** Rows in the order of Google's page. SearXNG sorts by score, which moves up a URL that occurs twice. */
export function resultElements(rows: readonly Row[]): Element[] {
  return rows
    .map((result, index) => ({ result, position: result.positions.reduce((a, b) => Math.min(a, b), Infinity), index }))
    .toSorted((a, b) => (a.position === b.position ? a.index - b.index : a.position - b.position))
    .map(({ result }) => rowElement(result));
}

/** The elements around the rows. SearXNG does not report their position; each kind is placed where Google usually shows it. */
export function surroundingElements(
  { answers, infoboxes, suggestions, corrections }: ResultsPage,
  asked: EngineNames,
): { above: Element[]; below: Element[] } {
  const isAsked = ({ engine }: Origin) => asked.has(engine);
  return {
    above: [
      ...linkList("other", "corrections", corrections),
      ...answers.filter(isAsked).map(answerElement),
      ...infoboxes.filter(isAsked).map(infoboxElement),
    ],
    below: linkList("related_searches", "", suggestions),
  };
}

/** A row that the instance adds itself may be without any text. */
function hasContent({ title, url, content, engine }: Row): boolean {
  return addedByInstance.test(engine) || `${title}${url}${content}`.trim() !== "";
}

function rowElement(result: Row): Element {
  const { date, rest } = splitLeadingDate(result.content);
  return buildElement(typesByTemplate.get(result.template) ?? "other", {
    title: result.title,
    url: result.url,
    description: rest,
    top: [result.price, date || (result.publishedDate || result.pubdate).replace(isoTime, "$1")],
    bottom: [result.author, result.length, result.views, result.metadata],
  });
}

/** An answer without a text, such as weather, becomes `other` with its template as title. */
function answerElement({ answer: words, url, template, translations, current }: Answer): Element {
  const description = words || translations.map((translation) => translation.text).join(", ");
  if (description === "")
    return buildElement("other", { title: template || "answer", url, description: current.summary });
  return buildElement(url === "" ? "answer_box" : "featured_snippet", { url, description });
}

/** A knowledge panel has no URL of its own: its sites and related topics are its links. */
function infoboxElement(panel: Infobox): Element {
  return buildElement("knowledge_graph", {
    title: panel.infobox,
    description: panel.content,
    bottom: panel.attributes.flatMap(({ label, value }) => (value === "" ? [] : [`${label}: ${value}`])),
    siteLinks: [
      ...panel.urls,
      ...panel.relatedTopics.flatMap(({ name, suggestions }) =>
        suggestions.map((title) => ({ title, description: name })),
      ),
    ],
  });
}

function linkList(type: ResultType, title: string, words: readonly string[]): Element[] {
  const siteLinks = words.filter((word) => word.trim() !== "").map((word) => ({ title: word }));
  return siteLinks.length === 0 ? [] : [buildElement(type, { title, siteLinks })];
}

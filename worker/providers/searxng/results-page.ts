import { z } from "zod";
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
  content: text,
  positions: z.array(z.number()).catch([]),
  publishedDate: text,
});
type Row = z.infer<typeof row>;

/** Google's engines return no answers and no infoboxes: of those, only the engine matters. Older SearXNG returns answers as bare strings. */
const origins = z.array(z.preprocess(toFields, z.object(origin))).catch([]);

export const resultsPageSchema = z.object({
  /** Absent if it is not a list. */
  results: z.array(z.unknown()).optional().catch(undefined),
  answers: origins,
  infoboxes: origins,
  suggestions: texts,
});
export type ResultsPage = z.infer<typeof resultsPageSchema>;

export type Origin = { engine: string; engines: string[] };

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

/** SearXNG does not report where they are on the page. Google usually shows them below the results. */
export function suggestionElements({ suggestions }: ResultsPage): Element[] {
  const siteLinks = suggestions.filter((word) => word.trim() !== "").map((title) => ({ title }));
  return siteLinks.length === 0 ? [] : [buildElement("related_searches", { siteLinks })];
}

/** A row that the instance adds itself may be without any text. */
function hasContent({ title, url, content, engine }: Row): boolean {
  return addedByInstance.test(engine) || `${title}${url}${content}`.trim() !== "";
}

function rowElement({ title, url, content, publishedDate }: Row): Element {
  const { date, rest } = splitLeadingDate(content);
  return buildElement("organic", {
    title,
    url,
    description: rest,
    top: [date || publishedDate.replace(isoTime, "$1")],
  });
}

import { z } from "zod";
import { buildElement, ratingText } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { genericLink, listOf, membersMax, optionalPart, row, siteLinks, text, toRows } from "./row-schemas.ts";

/** Blocks of a generated text, nested ones included. */
const blocksMax = 1_000;

const aiOverview = row.extend({ page_token: text });

/** Reading some overviews would take a second search. Such an overview becomes an element without a description. */
export function readAiOverview(value: unknown): Element[] | undefined {
  const overview = aiOverview.safeParse(value).data;
  const description = textOfBlocks(overview?.text_blocks);
  if (overview === undefined || (description || overview.page_token) === "") return undefined;
  const links = overview.references.map(({ title, link, snippet, source }) => ({
    title,
    url: link,
    description: snippet || source,
  }));
  return [buildElement("ai_overview", { description, siteLinks: links })];
}

const answerBox = z.looseObject({
  type: text,
  title: text,
  link: text,
  displayed_link: text,
  answer: text,
  result: text,
  snippet: text,
  date: text,
  list: listOf(z.string()),
  definitions: listOf(z.string()),
  sitelinks: siteLinks,
});

/** An answer box with a source is a featured snippet. Weather, stocks and the like have fields of many names: they become facts. */
export function readAnswerBox(value: unknown): Element[] | undefined {
  const box = answerBox.safeParse(value).data;
  if (box === undefined) return undefined;
  const { type, title, link, displayed_link, answer, result, snippet, date, list, definitions, ...rest } = box;
  const { sitelinks, ...facts } = rest;
  const shortAnswer = answer || result;
  const longAnswer = snippet || list.join(" ") || definitions.join(" ");
  const bottom = factLines(facts);
  if ((title || link || shortAnswer || longAnswer) === "" && bottom.length === 0) return undefined;
  return [
    buildElement(link === "" ? "answer_box" : "featured_snippet", {
      title: title || (bottom.length === 0 ? "" : type.replaceAll("_", " ")),
      url: link,
      breadcrumb: displayed_link,
      description: longAnswer || shortAnswer,
      top: [longAnswer === "" ? "" : shortAnswer, date],
      bottom,
      siteLinks: sitelinks,
    }),
  ];
}

const knowledgeGraph = z.looseObject({
  title: text,
  type: text,
  description: text,
  website: text,
  rating: text,
  reviews: text,
  review_count: text,
  source: optionalPart(z.object({ name: text, link: text }), { name: "", link: "" }),
});

/** A knowledge panel has no URL of its own: the site of the entity, its source and its lists are among its links. */
export function readKnowledgeGraph(value: unknown): Element[] | undefined {
  const panel = knowledgeGraph.safeParse(value).data;
  if (panel === undefined || (panel.title || panel.description) === "") return undefined;
  const { title, type, description, website, rating, reviews, review_count, source, ...facts } = panel;
  return [
    buildElement("knowledge_graph", {
      title,
      description,
      top: [type, ratingText(rating, reviews || review_count)],
      bottom: factLines(facts),
      siteLinks: [
        { title: website && title, url: website },
        { title: source.name, url: source.link },
        ...toRows(facts).flatMap(genericLink),
      ],
    }),
  ];
}

const textBlock = z.object({
  title: text,
  snippet: text,
  list: z.unknown().optional(),
  table: z.unknown().optional(),
  text_blocks: z.unknown().optional(),
});

/** The text of blocks that contain paragraphs, lists, tables or further blocks. */
export function textOfBlocks(value: unknown): string {
  let blocksLeft = blocksMax;
  const textsWithin = (part: unknown): string[] => {
    if (typeof part === "string") return [part];
    if (blocksLeft === 0) return [];
    blocksLeft -= 1;
    if (Array.isArray(part)) return part.flatMap(textsWithin);
    const block = textBlock.safeParse(part).data;
    if (block === undefined) return [];
    return [block.title, block.snippet, ...[block.list, block.table, block.text_blocks].flatMap(textsWithin)];
  };
  return textsWithin(value)
    .filter((part) => part !== "")
    .join(" ");
}

const hiddenFields = /(^|_)(links?|stick|token|thumbnail|image|kgmid|entity_type|id|endpoint)$/;

/** Whether the field has a value that the page does not display, such as an id or the URL of an image. */
export function isHiddenField(name: string): boolean {
  return hiddenFields.test(name);
}

/** `{patron_saint: "Drogo"}` → `Patron saint: Drogo`. */
function factLines(facts: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(facts)
    .slice(0, membersMax)
    .flatMap(([name, value]) => {
      const fact = text.parse(value);
      const label = name.replaceAll("_", " ").trim();
      if (fact === "" || isHiddenField(name)) return [];
      return [`${label.charAt(0).toUpperCase()}${label.slice(1)}: ${fact}`];
    });
}

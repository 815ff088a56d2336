import { z } from "zod";
import { type RawLink, ratingText } from "../build-element.ts";

/** The longest lists of real pages have some fifty members. What is far longer would only hold a worker up. */
export const membersMax = 200;
/** Blocks of a generated text, with all that lie in each other. */
const blocksMax = 1_000;

/** A text, or a number as one. Whatever else stands there is a decoration that is left out. */
export const text = z
  .unknown()
  .optional()
  .transform((value) => (typeof value === "string" ? value : Number.isFinite(value) ? String(value) : ""));

/** The members of a list that have the wanted form; none where it is no list. */
export function listOf<Shape extends z.ZodType>(shape: Shape) {
  return z
    .unknown()
    .optional()
    .transform((value) => {
      const members: unknown[] = Array.isArray(value) ? value.slice(0, membersMax) : [];
      return members.flatMap((member) => shape.safeParse(member).data ?? []);
    });
}

/** A part that mostly is not there, and that is left out in an unexpected form. */
export function optionalPart<Shape extends z.ZodType>(shape: Shape, nothing: z.infer<Shape>) {
  return shape
    .optional()
    .catch(undefined)
    .transform((part) => part ?? nothing);
}

/** An object of which nothing is known. Built once: a schema costs a hundred times what it costs to read a row. */
const anyObject = z.looseObject({});

const links = listOf(z.object({ title: text, link: text, snippet: text, snippets: listOf(z.string()) }));

/** `{expanded, inline}`, or a list as in ads. Expanded ones come before all others, in whatever lists those are. */
export const siteLinks = z
  .unknown()
  .optional()
  .transform((value) => {
    const { expanded, ...others } = anyObject.safeParse(value).data ?? {};
    return [value, expanded, ...Object.values(others)].flatMap((list) => links.parse(list)).map(siteLink);
  });

function siteLink({ title, link, snippet, snippets }: z.infer<typeof links>[number]): RawLink {
  return { title, url: link, description: snippet || snippets.join(" ") };
}

/** The rows of all grouped elements: each kind fills some of these. */
export const row = z.object({
  title: text,
  name: text,
  question: text,
  query: text,
  text,
  type: text,
  category: text,
  block_position: text,
  link: text,
  product_link: text,
  more_results_link: text,
  website: text,
  links: optionalPart(z.object({ website: text }), { website: "" }),
  displayed_link: text,
  snippet: text,
  description: text,
  source: text,
  source_name: text,
  platform: text,
  channel: text,
  date: text,
  duration: text,
  price: text,
  rating: text,
  reviews: text,
  address: text,
  extensions: listOf(z.string()),
  list: listOf(z.string()),
  text_blocks: z.unknown().optional(),
  references: listOf(z.object({ title: text, link: text, snippet: text, source: text })),
  sitelinks: siteLinks,
});
export type Row = z.infer<typeof row>;

/** The members of a list, or of all lists in an object: some elements come as either. */
export function toRows(value: unknown): Row[] {
  const lists = Array.isArray(value) ? [value] : Object.values(anyObject.safeParse(value).data ?? {});
  return lists
    .filter((list) => Array.isArray(list))
    .flat()
    .slice(0, membersMax)
    .flatMap((member) => row.safeParse(typeof member === "string" ? { title: member } : member).data ?? []);
}

/** A row of an unknown kind as a link; none where it names nothing. */
export function genericLink({
  title,
  name,
  question,
  query,
  text: words,
  link,
  snippet,
  source,
  date,
}: Row): RawLink[] {
  const named = title || name || question || query || words;
  return (named || link) === ""
    ? []
    : [{ title: named, url: link, description: snippet || joinWithDots(source, date) }];
}

const noRating = { rating: "", reviews: "", votes: "" };
export const emptySnippetPart = { extensions: [], detected_extensions: noRating };
/** What stands above or below a snippet: its lines, and what SerpApi recognized in them. */
export const snippetPart = optionalPart(
  z.object({
    extensions: listOf(z.string()),
    detected_extensions: optionalPart(z.object({ rating: text, reviews: text, votes: text }), noRating),
  }),
  emptySnippetPart,
);
export type SnippetPart = z.infer<typeof snippetPart>;

const ratingLine = /^[\p{L}:\s]*(\d(?:[.,]\d+)?)(?:\s*\/\s*\d+)?(\s*\(.*\)|\s+\d[\d.,]*[KM]?)?$/u;
const countLine = /^\(?(\d[\d.,]*)\s+\p{L}+\)?$/u;
const marksOfDirection = /[\u200e\u200f]/g;

/** The lines of a part of the snippet, as they stand on the page. */
export function snippetLines({ extensions }: SnippetPart): string[] {
  return extensions.map((words) => words.replace(marksOfDirection, "").trim());
}

/** `["Rating: 4.8", "1,234 votes", "$99"]` → `{stars: "4.8 (1,234)", lines: ["$99"]}`, where the rating was recognized. */
export function splitRating(part: SnippetPart): { stars: string; lines: string[] } {
  const lines = snippetLines(part);
  const { rating, reviews, votes } = part.detected_extensions;
  const count = reviews || votes;
  const stars = ratingText(rating, count);
  const found = lines.map((words) => ratingLine.exec(words));
  const at = found.findIndex((match) => Number(match?.[1]?.replace(",", ".")) === Number(rating));
  if (stars === "" || at < 0) return { stars, lines };
  const isCountInNextLine =
    found[at]?.[2] === undefined && countLine.exec(lines[at + 1] ?? "")?.[1]?.replace(/\D/g, "") === count;
  const isLabelInLastLine = /^rating:?$/i.test(lines[at - 1] ?? "");
  const first = isLabelInLastLine ? at - 1 : at;
  const last = isCountInNextLine ? at + 1 : at;
  return { stars, lines: lines.filter((_, index) => index < first || index > last) };
}

/** `Source · 2 days ago`. */
export function joinWithDots(...words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
}

const textBlock = z.object({
  title: text,
  snippet: text,
  list: z.unknown().optional(),
  table: z.unknown().optional(),
  text_blocks: z.unknown().optional(),
});

/** The running text of blocks that hold paragraphs, lists, tables, or blocks again. */
export function textOfBlocks(value: unknown): string {
  let blocksLeft = blocksMax;
  const wordsWithin = (part: unknown): string[] => {
    if (typeof part === "string") return [part];
    if (blocksLeft === 0) return [];
    blocksLeft -= 1;
    if (Array.isArray(part)) return part.flatMap(wordsWithin);
    const block = textBlock.safeParse(part).data;
    if (block === undefined) return [];
    return [block.title, block.snippet, ...[block.list, block.table, block.text_blocks].flatMap(wordsWithin)];
  };
  return wordsWithin(value)
    .filter((words) => words !== "")
    .join(" ");
}

const onlyForMachines = /(^|_)(links?|stick|token|thumbnail|image|kgmid|entity_type|id|endpoint)$/;

/** Whether a name stands for something that nobody reads on the page. */
export function isNotDisplayed(name: string): boolean {
  return onlyForMachines.test(name);
}

/** `{patron_saint: "Drogo"}` → `Patron saint: Drogo`. */
export function factLines(facts: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(facts)
    .slice(0, membersMax)
    .flatMap(([name, value]) => {
      const words = text.parse(value);
      const label = name.replaceAll("_", " ").trim();
      const isFact = words !== "" && !isNotDisplayed(name);
      return isFact ? [`${label.charAt(0).toUpperCase()}${label.slice(1)}: ${words}`] : [];
    });
}

import { z } from "zod";
import { joinWithDots, type RawLink } from "../build-element.ts";

/** The longest lists of real pages have about fifty members. Reading far longer ones would block the worker's other searches. */
export const membersMax = 200;

/** A text, or a number as text. Any other value is left out. */
export const text = z
  .unknown()
  .optional()
  .transform((value) => (typeof value === "string" ? value : Number.isFinite(value) ? String(value) : ""));

/** The members of a list that match the schema; none if the value is not a list. */
export function listOf<Shape extends z.ZodType>(shape: Shape) {
  return z
    .unknown()
    .optional()
    .transform((value) => {
      const members: unknown[] = Array.isArray(value) ? value.slice(0, membersMax) : [];
      return members.flatMap((member) => shape.safeParse(member).data ?? []);
    });
}

/** A part that is often missing. One in an unexpected form counts as missing. */
export function optionalPart<Shape extends z.ZodType>(shape: Shape, fallback: z.infer<Shape>) {
  return shape
    .optional()
    .catch(undefined)
    .transform((part) => part ?? fallback);
}

/** An object with unknown fields. Built once: building a schema costs a hundred times as much as reading a row. */
const anyObject = z.looseObject({});

const links = listOf(z.object({ title: text, link: text, snippet: text, snippets: listOf(z.string()) }));

/** `{expanded, inline}`, or a list as in ads. Expanded links come first, then those of all other lists. */
export const siteLinks = z
  .unknown()
  .optional()
  .transform((value) => {
    const { expanded, ...others } = anyObject.safeParse(value).data ?? {};
    return [value, expanded, ...Object.values(others)].flatMap((list) => links.parse(list)).map(toSiteLink);
  });

function toSiteLink({ title, link, snippet, snippets }: z.infer<typeof links>[number]): RawLink {
  return { title, url: link, description: snippet || snippets.join(" ") };
}

/** The rows of all grouped elements: each kind has some of these fields. */
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

/** The rows of a list, or of all lists in an object: some elements come in either form. */
export function toRows(value: unknown): Row[] {
  const lists = Array.isArray(value) ? [value] : Object.values(anyObject.safeParse(value).data ?? {});
  return lists
    .filter((list) => Array.isArray(list))
    .flat()
    .slice(0, membersMax)
    .flatMap((member) => row.safeParse(typeof member === "string" ? { title: member } : member).data ?? []);
}

/** A row of an unknown kind as a link; nothing if it has neither a name nor a URL. */
export function genericLink({
  title,
  name,
  question,
  query,
  text: label,
  link,
  snippet,
  source,
  date,
}: Row): RawLink[] {
  const linkText = title || name || question || query || label;
  if ((linkText || link) === "") return [];
  return [{ title: linkText, url: link, description: snippet || joinWithDots(source, date) }];
}

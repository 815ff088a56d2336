import { z } from "zod";
import { buildElement } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { listOf, optionalPart, siteLinks, text } from "./row-schemas.ts";
import { emptySnippetPart, snippetLines, snippetPart, splitRating } from "./snippet-parts.ts";

/** Title and link are required. Every other field is optional, and left out if it has an unexpected form. */
export const organicRow = z
  .object({
    title: z.string(),
    link: z.string().optional(),
    redirect_link: z.string().optional().catch(undefined),
    displayed_link: text,
    snippet: text,
    date: text,
    author: text,
    cited_by: text,
    price: text,
    rating: text,
    reviews: text,
    extensions: listOf(z.string()),
    rich_snippet: optionalPart(z.object({ top: snippetPart, bottom: snippetPart }), {
      top: emptySnippetPart,
      bottom: emptySnippetPart,
    }),
    rich_snippet_table: snippetPart,
    rich_snippet_list: listOf(z.string()),
    sitelinks: siteLinks,
  })
  .refine(({ link, redirect_link }) => (link ?? redirect_link) !== undefined);

export function organicElement(row: z.infer<typeof organicRow>): Element {
  const top = splitRating(row.rich_snippet.top);
  // Some rows have a rating and lines of their own, outside of the rich snippet.
  const own = splitRating({
    extensions: row.extensions,
    detected_extensions: { rating: row.rating, reviews: row.reviews, votes: "" },
  });
  return buildElement("organic", {
    title: row.title,
    url: row.link ?? row.redirect_link ?? "",
    breadcrumb: row.displayed_link,
    description: row.snippet,
    top: [...new Set([top.stars || own.stars, row.price, ...top.lines, row.author, row.cited_by, row.date])],
    bottom: [
      ...snippetLines(row.rich_snippet.bottom),
      ...snippetLines(row.rich_snippet_table),
      ...row.rich_snippet_list,
      ...own.lines,
    ],
    siteLinks: row.sitelinks,
  });
}

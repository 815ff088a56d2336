import { buildElement, type RawLink } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { isObject } from "../read-rows.ts";
import { Row, tableLine, toMembers, toText } from "./fields.ts";
import { restOf, urlOf } from "./links.ts";
import { splitRating, toLines, toSnippetPart } from "./snippet-parts.ts";

/** An organic result; undefined for a row without any address, which no caller could use. */
export function readOrganic(value: unknown): Element | undefined {
  const row = new Row(value);
  const moments = row.rows("key_moments").map(toMoment);
  const url = urlOf(row) || withoutTime(moments[0]?.url ?? "");
  if (url === "") return undefined;
  // The site's name: the breadcrumb and the domain tell it.
  row.skip("source");
  const richSnippet = new Row(row.take("rich_snippet"));
  const above = splitRating(toSnippetPart(richSnippet.take("top")));
  // Some rows have a rating and lines of their own, outside of the rich snippet.
  const detected = new Map(["rating", "reviews"].map((name) => [name, toText(row.take(name))]));
  const own = splitRating({ lines: toLines(row.take("extensions")), detected });
  const table = new Row(row.take("rich_snippet_table"));
  const siteLinks = toSiteLinks(row.take("sitelinks"));
  return buildElement("organic", {
    title: row.text("title"),
    url,
    breadcrumb: row.text("displayed_link"),
    description: row.text("snippet"),
    ...withRest(row, {
      top: [
        above.stars || own.stars,
        row.text("price"),
        ...above.lines,
        row.text("author"),
        row.text("cited_by"),
        row.text("date"),
        row.text("duration"),
      ],
      bottom: [
        ...toSnippetPart(richSnippet.take("bottom")).lines,
        ...toLines(table.take("extensions")),
        ...toMembers(table.take("table")).map(tableLine),
        ...toLines(row.take("rich_snippet_list")),
        ...own.lines,
      ],
      siteLinks: [...siteLinks, ...moments],
    }),
  });
}

/** Expanded links come first, then those of all other lists. An ad's links are a list. */
export function toSiteLinks(value: unknown): RawLink[] {
  if (Array.isArray(value)) return toMembers(value).map(toSiteLink);
  const { expanded, ...others } = isObject(value) ? value : {};
  return [expanded, ...Object.values(others)].flatMap(toMembers).map(toSiteLink);
}

function toSiteLink(value: unknown): RawLink {
  const row = new Row(value);
  const description = row.text("snippet") || row.texts("snippets").join(" ");
  return { title: row.text("title"), url: row.text("link"), description: description || row.text("date") };
}

/** A chapter of a video: `{time: "01:20", title: "Priming", link: "…&t=80"}`. */
function toMoment(row: Row): Required<RawLink> {
  return { title: row.first("title", "text"), url: row.text("link"), description: row.text("time") };
}

/** `https://video.example/watch?v=1&t=80` → `https://video.example/watch?v=1`: a video with chapters may lack its own address. */
function withoutTime(link: string): string {
  return link.replace(/[?&]t=\d+s?$/, "");
}

type Parts = { top: string[]; bottom: string[]; siteLinks: RawLink[] };

/** These parts, and what else the row has: lists of stories, answers, or a carousel. Each line once. */
export function withRest(row: Row, { top, bottom, siteLinks }: Parts): Parts {
  const { lines, links } = restOf(row);
  return {
    top: [...new Set(top)],
    bottom: [...new Set([...bottom, ...lines])],
    siteLinks: [...siteLinks, ...links],
  };
}

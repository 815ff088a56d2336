import type { ResultType } from "../../../shared/results.ts";
import { buildElement, type RawLink } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { isObject, readRows } from "../read-rows.ts";
import { knownFields, otherLines, rowKind, starsOf, textIn, toLink } from "./row-fields.ts";

const siteLink = rowKind({ title: ["title"], url: ["link"], texts: ["snippet"] });
const fields = knownFields("title", "link", "snippet", "date", "price", "priceRange", "sitelinks");

/** An organic result or an advertisement, as far as it can be read; undefined if no text and no link can be. */
export function readOrganicRow(type: ResultType, row: unknown): Element | undefined {
  if (!isObject(row) || textIn(row, "title", "link", "snippet").trim() === "") return undefined;
  return buildElement(type, {
    title: textIn(row, "title"),
    url: textIn(row, "link"),
    description: textIn(row, "snippet"),
    top: [starsOf(row), textIn(row, "price"), textIn(row, "priceRange"), textIn(row, "date")],
    bottom: otherLines(row, fields),
    siteLinks: readSiteLinks(row["sitelinks"]),
  });
}

function readSiteLinks(value: unknown): RawLink[] {
  return Array.isArray(value) ? readRows(value, (row) => toLink(row, siteLink)).found : [];
}

import { z } from "zod";
import { ratingText } from "../build-element.ts";
import { listOf, optionalPart, text } from "./row-schemas.ts";

const noRating = { rating: "", reviews: "", votes: "" };
export const emptySnippetPart = { extensions: [], detected_extensions: noRating };
/** The part above or below a snippet: its lines, and the rating that SerpApi recognized in them. */
export const snippetPart = optionalPart(
  z.object({
    extensions: listOf(z.string()),
    detected_extensions: optionalPart(z.object({ rating: text, reviews: text, votes: text }), noRating),
  }),
  emptySnippetPart,
);
export type SnippetPart = z.infer<typeof snippetPart>;

/** `Rating: 4.8`, `9/10`, `5.0(102)`, `4.4 (1.1K)`; the second group is the count. */
const ratingLine = /^[\p{L}:\s]*(\d(?:[.,]\d+)?)(?:\s*\/\s*\d+)?(\s*\(.*\)|\s+\d[\d.,]*[KM]?)?$/u;
/** `1,234 votes`. */
const countLine = /^\(?(\d[\d.,]*)\s+\p{L}+\)?$/u;
/** LRM and RLM. */
const directionMarks = /[\u200e\u200f]/g;

/** The lines of a snippet part, as displayed. */
export function snippetLines({ extensions }: SnippetPart): string[] {
  return extensions.map((line) => line.replace(directionMarks, "").trim());
}

/** `["Rating: 4.8", "1,234 votes", "$99"]` → `{stars: "4.8 (1,234)", lines: ["$99"]}` if SerpApi recognized the rating. */
export function splitRating(part: SnippetPart): { stars: string; lines: string[] } {
  const lines = snippetLines(part);
  const { rating, reviews, votes } = part.detected_extensions;
  const count = reviews || votes;
  const stars = ratingText(rating, count);
  const matches = lines.map((line) => ratingLine.exec(line));
  const at = matches.findIndex((match) => Number(match?.[1]?.replace(",", ".")) === Number(rating));
  if (stars === "" || at < 0) return { stars, lines };
  const isCountInNextLine =
    matches[at]?.[2] === undefined && countLine.exec(lines[at + 1] ?? "")?.[1]?.replace(/\D/g, "") === count;
  const isLabelInPreviousLine = /^rating:?$/i.test(lines[at - 1] ?? "");
  const first = isLabelInPreviousLine ? at - 1 : at;
  const last = isCountInNextLine ? at + 1 : at;
  return { stars, lines: lines.filter((_, index) => index < first || index > last) };
}

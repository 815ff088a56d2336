import { joinLines, type RawLink } from "../build-element.ts";
import type { Fields } from "../read-rows.ts";
import { firstText } from "./item-fields.ts";

/**
 * The text of a part of an AI Overview. The field `text` also has what Google draws over the text: the chips of its sources
 * (`Facebook · Plumbing Pals`, `www.example.com +2`) and the captions of videos. The field `markdown` has them as links, so it tells
 * them apart.
 */

// No part of an address matches a bracket, and no text of a link, which keeps the time linear.
const address = String.raw`\((?:[^()[\]]|\([^()[\]]*\))*\)`;
const picture = new RegExp(String.raw`!\[[^[\]]*\]${address}`, "g");
const citation = new RegExp(String.raw`\[(?:\[\d+\])?\]${address}`, "g");
const link = new RegExp(String.raw`\[([^[\]]*)\](${address})`, "g");
/** A link to a page with its picture, or in several lines: the card of a video. */
const isCard = (text: string) => text.includes(pictureMark) || text.includes("\n");
/** The character that stands for an object in a text. */
const pictureMark = "\ufffc";
/** The picture of a video, and how long it is. */
const markedPicture = /\ufffc(?:\n?\d{1,3}(?::\d\d){1,2}(?!\d))?/g;
const markup = /\*\*|\[|\]\([^()[\]]*\)|^#{1,6} |^[-*] /gm;
/** Markdown that shows less of the words than this, with its cards, is a heading or a part of the text. */
const wordsShareMin = 1 / 3;

/** @returns the text without chips and captions; as it is, if there is no Markdown of the whole text. */
export function overviewText(part: Fields): string {
  const text = firstText(part, "text");
  const clean = plainMarkdown(part["markdown"]);
  if (text === "" || clean === "") return text || clean;
  const words = wordsOf(text);
  const shownWords = wordsOf(withMarkedPictures(String(part["markdown"])).replace(link, "$1"));
  return shownWords.length >= words.length * wordsShareMin && isWithin(words, wordsOf(clean)) ? clean : text;
}

/** Markdown without pictures, cards, citations, emphasis and the addresses of its links. */
export function plainMarkdown(markdown: unknown): string {
  if (typeof markdown !== "string") return "";
  const text = withMarkedPictures(markdown)
    .replace(link, (_, shown: string) => (isCard(shown) ? "" : shown))
    .replace(markedPicture, "")
    .replace(markup, "");
  return joinLines(text.split("\n"));
}

/** The cards in Markdown, as links with their first line as title. */
export function cardsIn(markdown: unknown): RawLink[] {
  if (typeof markdown !== "string") return [];
  return [...withMarkedPictures(markdown).matchAll(link)].flatMap(([, shown = "", url = ""]) => {
    const [title = "", ...lines] = shown.replaceAll(pictureMark, "").split("\n");
    return isCard(shown) ? [{ title, url: url.slice(1, -1), description: joinLines(lines) }] : [];
  });
}

const withMarkedPictures = (markdown: string) =>
  markdown.replaceAll(pictureMark, "").replace(picture, pictureMark).replace(citation, "");

const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? [];

/** Whether all words are in the text, in their order. */
function isWithin(text: readonly string[], words: readonly string[]): boolean {
  let found = 0;
  for (const word of text) if (word === words[found]) found += 1;
  return found === words.length;
}

import { filled, headingCharactersMax, joinLines, joinWithDots, type RawLink } from "../build-element.ts";
import type { Fields } from "../read-rows.ts";
import { isOnGoogle } from "../sanitize.ts";
import {
  firstText,
  formatDate,
  formatPrices,
  formatRating,
  formatTime,
  splitAtDots,
  tableLines,
  textsOf,
  toRows,
  toTexts,
  underHeading,
} from "./item-fields.ts";

/** Links are found in the element, in its items, and in the parts of its items. */
const linkDepthMax = 3;
/** Deeper than the parts of any generated text. */
const partDepthMax = 20;
/** No list on a page of results is longer. */
const listRowsMax = 500;

/** Lists whose members are not links of the element: the `images` of an element repeat its own link. */
const fieldsWithoutLinks = new Set(["images", "rectangle", "highlighted"]);
/** Lists of texts that are keywords to search for. Other lists of texts belong to the element. */
const keywordFields = new Set(["items", "related_searches", "extended_people_also_search"]);
const titleFields = ["title", "question_text", "alt", "tweet", "featured_title"];
const sourceFields = ["source", "seller", "marketplace", "author", "location", "contract_type", "salary"];
const durationFields = ["time", "time_to_play"];
const textFields = [
  "description",
  "snippet",
  "answer_text",
  "text",
  "subtitle",
  "featured_title",
  "consideration_category",
  "refine_type",
  "keyword",
];
/** Numbers without a word, by the word that Google shows beside them. */
const counts = [
  ["posts", "posts_count"],
  ["votes", "votes"],
] as const;

/** A member of an element as a link, described by its price, source, date and texts. */
export function toLink(row: Fields): RawLink {
  const given = firstText(row, "url");
  if (row["type"] === "link_element" && leadsNowhere(given)) return {};
  const answers = answersOf(row);
  // That a picture is at Google says nothing of it.
  const others = isOnGoogle(given) ? ["source", "description"] : ["source", "description", "domain"];
  const title = firstText(row, ...titleFields) || (given && firstText(row, ...others));
  const details = new Set([
    ...formatPrices(row),
    ...textsOf(row, sourceFields),
    ...splitAtDots(firstText(row, "pre_snippet")).map(formatTime),
    formatDate(row),
    ...textsOf(row, durationFields),
    formatRating(row),
    firstText(row, "phone"),
    ...toTexts(row["badges"]),
    ...textsOf(row, textFields).map(withoutDash),
    ...splitAtDots(firstText(row, "extended_snippet")),
    ...counts.map(([word, field]) => countText(word, firstText(row, field))),
    ...answers.map(({ text }) => text),
  ]);
  details.delete(title);
  return { title, url: addressOf(row, answers), description: joinWithDots(...details) };
}

/** Questions, each described by its answer and the page that answers it, and after them the keywords of their answers. */
export function questionLinks(rows: readonly Fields[]): RawLink[] {
  const keywords: RawLink[] = [];
  const questions = rows.slice(0, listRowsMax).map((row) => {
    const answers = answersOf(row);
    keywords.push(...answers.flatMap((answer) => answer.keywords));
    const title = firstText(row, ...titleFields);
    const details = new Set([
      ...textsOf(row, ["answer_text", "description", "snippet"]),
      ...answers.map(({ text }) => text),
      ...textsOf(row, ["source", "consideration_category"]),
      countText("votes", firstText(row, "votes")),
    ]);
    details.delete(title);
    return { title, url: addressOf(row, answers), description: joinWithDots(...details) };
  });
  return [...questions, ...keywords];
}

/** What a page shows below a row when it is opened: the answer to a question, or a page that mentions a product. */
type Answer = { text: string; url: string; keywords: readonly RawLink[] };

function answersOf(row: Fields): Answer[] {
  const expanded = toRows(row["expanded_element"]);
  return (expanded.length > 0 ? expanded : toRows(row["mentioned_in"]).slice(0, 1)).map(readAnswer);
}

/** A generated answer with the first page that it cites, or one with the title and the date of its page. */
function readAnswer(answer: Fields): Answer {
  if (isOverview(answer) || Array.isArray(answer["items"])) {
    const { paragraphs, tableRows, links } = readOverview(answer);
    const text = joinWithDots(joinLines(paragraphs), tableRows.join("; "));
    return { text, url: links.find(({ url }) => url !== "")?.url ?? "", keywords: [] };
  }
  const texts = new Set([
    ...textsOf(answer, ["featured_title", "description", "snippet", "text"]),
    tableLines(answer).join("; "),
    ...textsOf(answer, ["title", "breadcrumb"]),
    formatDate(answer),
  ]);
  const keywords = toTexts(answer["related_searches"]).map((title) => ({ title }));
  return { text: joinWithDots(...texts), url: firstText(answer, "url"), keywords };
}

/** Whether an address is that of a button on Google's page: `More` and a telephone number lead to `https://www.google.com/#`. */
const leadsNowhere = (url: string): boolean => /^https?:\/\/[^/]+\/?#$/.test(url) && isOnGoogle(url);

/** A copy at DataForSEO, whose address has the id of our task. */
const ownPicture = /^https:\/\/api\.dataforseo\.com\/.*/;

function addressOf(row: Fields, answers: readonly Answer[]): string {
  const isImage = firstText(row, "type").endsWith("images_element");
  return (
    firstText(row, "url", ...(isImage ? ["image_url"] : [])).replace(ownPicture, "") ||
    (answers.find(({ url }) => url !== "")?.url ?? firstText(row, "booking_url", "marketplace_url"))
  );
}

const countText = (word: string, count: string): string => count && `${word}: ${count}`;

/** `- Cited by 462`, which Google shows after the author. */
const withoutDash = (text: string): string => (text.startsWith("- ") ? text.slice(2) : text);

/** All links of an element, in its order: from its lists, their parts and its single links. A keyword becomes a link without a URL. */
export function collectLinks(row: Fields, depth = linkDepthMax): RawLink[] {
  return Object.entries(row).flatMap(([field, value]) => {
    if (fieldsWithoutLinks.has(field) || (!Array.isArray(value) && field !== "link" && field !== "items")) return [];
    const keywords = keywordFields.has(field) && Array.isArray(value) ? toTexts(value).slice(0, listRowsMax) : [];
    return [...keywords.map((title) => ({ title })), ...linksOfList(value, depth)];
  });
}

function linksOfList(value: unknown, depth: number): RawLink[] {
  return toRows(value)
    .slice(0, listRowsMax)
    .flatMap((row) => {
      const inner = depth > 1 ? collectLinks(row, depth - 1) : [];
      const own = toLink(row);
      if (own.url !== "" || inner.length === 0) return [own, ...inner];
      // A row that only groups others, such as `Songs`, is not a link itself: its title describes each of them.
      const title = (own.title ?? "").slice(0, headingCharactersMax);
      return inner.map((link, at) => {
        const texts = [title, at === 0 ? (own.description ?? "") : "", link.description ?? ""];
        return { ...link, description: joinWithDots(...texts) };
      });
    });
}

/** What an AI Overview holds: of the page, of a knowledge panel, or of the answer to a question. */
type Overview = {
  /** Each with its heading. */
  paragraphs: string[];
  /** The rows of its tables. */
  tableRows: string[];
  /** The pages that it cites as a whole, and then those of each part. */
  links: RawLink[];
};

export function isOverview({ type }: Fields): boolean {
  return typeof type === "string" && /(?:^|_)ai_overview(?:_|$)/.test(type);
}

export function readOverview(overview: Fields): Overview {
  const parts = toRows(overview["items"]);
  const paragraphs = filled(parts.map((part) => paragraphOf(part)));
  return {
    paragraphs: paragraphs.length > 0 ? paragraphs : filled([plainMarkdown(overview["markdown"])]),
    tableRows: parts.flatMap(tableLines),
    links: [...citedBy(overview), ...parts.flatMap((part) => linksOf(part))],
  };
}

/** A part with its components as one paragraph. A video is a link and not a part of the text. */
function paragraphOf(part: Fields, depth = partDepthMax): string {
  if (isVideo(part) || toRows(part["table"]).length > 0) return "";
  const components = componentsOf(part, depth).map((component) => paragraphOf(component, depth - 1));
  const title = firstText(part, "title");
  const own = components.length > 0 ? firstText(part, "text") : overviewText(part);
  return underHeading(title, joinLines([own === title ? "" : own, ...components]));
}

const componentsOf = (part: Fields, depth: number): Fields[] => (depth > 1 ? toRows(part["components"]) : []);

function linksOf(part: Fields, depth = partDepthMax): RawLink[] {
  const own = isVideo(part) ? [toCitedLink(part)] : [];
  return [
    ...own,
    ...citedBy(part),
    ...cardsIn(part["markdown"]),
    ...toRows(part["links"]).map(toCitedLink),
    ...componentsOf(part, depth).flatMap((component) => linksOf(component, depth - 1)),
  ];
}

const citedBy = (part: Fields): RawLink[] => toRows(part["references"]).map(toCitedLink);

function toCitedLink(row: Fields): RawLink {
  const title = firstText(row, "title", "source", "domain");
  const texts = new Set([firstText(row, "source"), formatDate(row), firstText(row, "text", "snippet", "description")]);
  texts.delete(title);
  return { title, url: firstText(row, "url"), description: joinWithDots(...texts) };
}

const isVideo = (part: Fields): boolean => part["type"] === "ai_overview_video_element";

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
function overviewText(part: Fields): string {
  const text = firstText(part, "text");
  const clean = plainMarkdown(part["markdown"]);
  if (text === "" || clean === "") return text || clean;
  const words = wordsOf(text);
  const shownWords = wordsOf(withMarkedPictures(String(part["markdown"])).replace(link, "$1"));
  return shownWords.length >= words.length * wordsShareMin && isWithin(words, wordsOf(clean)) ? clean : text;
}

/** Markdown without pictures, cards, citations, emphasis and the addresses of its links. */
function plainMarkdown(markdown: unknown): string {
  if (typeof markdown !== "string") return "";
  const text = withMarkedPictures(markdown)
    .replace(link, (_, shown: string) => (isCard(shown) ? "" : shown))
    .replace(markedPicture, "")
    .replace(markup, "");
  return joinLines(text.split("\n"));
}

/** The cards in Markdown, as links with their first line as title. */
function cardsIn(markdown: unknown): RawLink[] {
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

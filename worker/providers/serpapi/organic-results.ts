import { buildElement, ratingText, type RawLink } from "../build-element.ts";
import type { Element } from "../provider.ts";
import { toFields } from "../read-rows.ts";
import {
  describe,
  membersMax,
  restOf,
  Row,
  tableLine,
  toMembers,
  toText,
  toTexts,
  urlOf,
  withoutDirectionMarks,
} from "./fields.ts";

/** An organic result; undefined for a row without any address, which no caller could use. */
export function readOrganic(value: unknown): Element | undefined {
  const row = new Row(value);
  const moments = row.rows("key_moments").map(toMoment);
  const url = urlOf(row) || withoutTime(moments[0]?.url ?? "");
  if (url === "") return undefined;
  // The breadcrumb and the domain already name the site, but not its author: `LinkedIn · Ann Pump`.
  const source = row.text("source");
  const { word } = toFields(row.take("must_include"));
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
        source.includes(" · ") ? source : "",
        above.stars || own.stars,
        row.text("price"),
        ...above.lines,
        row.text("displayed_results"),
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
        // The word that Google found on no part of the page, and what its link does.
        toText(word) && `Must include: ${toText(word)}`,
      ],
      siteLinks: [...siteLinks, ...moments],
    }),
  });
}

/** Expanded links come first, then those of all other lists. An ad's links are a list. */
export function toSiteLinks(value: unknown): RawLink[] {
  if (Array.isArray(value)) return toMembers(value).map(toSiteLink);
  const { expanded, ...others } = toFields(value);
  return [expanded, ...Object.values(others)].flatMap(toMembers).map(toSiteLink);
}

function toSiteLink(value: unknown): RawLink {
  const row = new Row(value);
  const title = row.text("title");
  const url = row.text("link");
  const snippet = row.text("snippet") || row.texts("snippets").join(" ");
  return { title, url, description: describe(row, [snippet], title) };
}

/** A chapter of a video: `{time: "01:20", title: "Priming", link: "…&t=80"}`. */
function toMoment(row: Row): Required<RawLink> {
  return { title: row.first("title", "text"), url: row.text("link"), description: row.text("time") };
}

/** `https://video.example/watch?v=1&t=80` → `https://video.example/watch?v=1`: a video with chapters may lack its own address. */
const withoutTime = (link: string): string => link.replace(/[?&]t=\d+s?$/, "");

type Parts = { top: string[]; bottom: string[]; siteLinks: RawLink[] };

/** These parts, and what else the row has: lists of stories, answers, or a carousel. Each line once. */
function withRest(row: Row, { top, bottom, siteLinks }: Parts): Parts {
  const { lines, links } = restOf(row);
  return { top: [...new Set(top)], bottom: [...new Set([...bottom, ...lines])], siteLinks: [...siteLinks, ...links] };
}

/** The part above or below a snippet: its lines, and the numbers that SerpApi recognized in them, by name. */
type SnippetPart = { lines: string[]; detected: ReadonlyMap<string, unknown> };
type Numbers = SnippetPart["detected"];

/** `{extensions: ["Rating: 4.8"], detected_extensions: {rating: 4.8}}`. Anything in another form counts as missing. */
function toSnippetPart(value: unknown): SnippetPart {
  const { extensions, detected_extensions } = toFields(value);
  const detected = Object.entries(toFields(detected_extensions)).slice(0, membersMax);
  return { lines: toLines(extensions), detected: new Map(detected) };
}

/** The texts of a list of lines, as displayed, without the dash that separates one from the snippet. */
function toLines(value: unknown): string[] {
  return toTexts(value).map((line) => withoutDirectionMarks(line).replace(/ —$/, ""));
}

/** Longer lines are sentences, and searching them for numbers would be slow. */
const lineCharactersMax = 200;
/** `Rating: 4.8`, `9/10`, `5.0(102)`, `4.4 (1.1K)`, `評価: 4.5`. */
const ratingLine =
  /^(?<label>[\p{L}\p{M}\s:：]*)(?<value>\d{1,3}(?:[.,٫]\d+)?)(?:\s*\/\s*(?<best>\d{1,3}))?(?<count>\s*\(.*\)|\s+\d[\d.,]*[KM]?)?$/u;
/** `1,234 votes`, `(24 Rezensionen)`, `4 292 avis`, and what follows it. */
const countLine = /^\(?(?<count>\d[\d.,\s]*)\s*\p{L}+\)?(?<rest>\s.*)?$/u;
/** Arabic, Persian and Devanagari digits. */
const otherDigits = /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]/g;

/** The word for a rating, in English and in the languages where SerpApi keeps Google's own word as the name of the number. */
const ratingNames = new Set(
  `rating note bewertung valoración calificación puntuación valutazione voto classificação avaliação nota beoordeling waardering betyg
  bedømmelse vurdering arvio arvosana ocena hodnocení hodnotenie értékelés evaluare рейтинг оценка оцінка βαθμολογία puan
  değerlendirme 評価 評分 评分 평점 คะแนน التقييم דירוג रेटिंग`.split(/\s+/),
);
/** Numbers with these names are something else in every language, or the rating under its English name. */
const englishNames = /^(?:price|currency|rating|reviews|votes|vote_count|answer_count)/;

type Rating = { at: number; value: string; name: string };

/**
 * `["Rating: 4.8", "1,234 votes", "$99"]` → `{stars: "4.8 (1,234)", lines: ["$99"]}`, if SerpApi recognized the rating. It names
 * the number in English, or with the page's word for it; then its English name has the number of stars, rounded to halves:
 * `["Note : 4,3", "4 292 avis"]` with `{rating: 4.5, note: 4.3, avis: 4292}` → `{stars: "4.3 (4,292)"}`.
 */
function splitRating({ lines, detected }: SnippetPart): { stars: string; lines: string[] } {
  const matches = lines.map((line) => groupsOf(ratingLine, line));
  const rating = toText(detected.get("rating"));
  const found = findRating(matches, rating, detected);
  if (found === undefined) return { stars: ratingText(rating, namedCount(detected)), lines };
  let next = found.at + 1;
  // Some lines are there twice: once for the eye and once for screen readers.
  while (matches[next]?.["value"] === matches[found.at]?.["value"]) next += 1;
  const counted = matches[found.at]?.["count"] === undefined ? countIn(lines[next], detected, found.name) : undefined;
  const isLabelBefore = /^rating:?$/i.test(lines[found.at - 1] ?? "");
  return {
    stars: ratingText(found.value, counted?.count ?? namedCount(detected)),
    lines: [
      ...lines.slice(0, isLabelBefore ? found.at - 1 : found.at),
      ...(counted === undefined || counted.rest === "" ? [] : [counted.rest]),
      ...lines.slice(counted === undefined ? next : next + 1),
    ],
  };
}

type RatingLine = Record<string, string> | undefined;

/**
 * The line with the rating: by its English name, or else by a name that no English page has. Another line may have the same
 * number: `["Level 4", "4.0 (12)"]`.
 */
function findRating(matches: readonly RatingLine[], rating: string, detected: Numbers): Rating | undefined {
  const isEqual = (match: RatingLine) => rating !== "" && toNumber(match?.["value"]) === Number(rating);
  const isNamed = (match: RatingLine) => isEqual(match) && (labelIn(match) === "" || ratingNames.has(labelIn(match)));
  const equalAt = matches.findIndex(matches.some(isNamed) ? isNamed : isEqual);
  if (equalAt >= 0) {
    return { at: equalAt, value: withScale(Number(rating), matches[equalAt]?.["best"]), name: "rating" };
  }
  for (const [at, match] of matches.entries()) {
    const value = toNumber(match?.["value"]);
    const name = [...detected].find(([key, number]) => number === value && !englishNames.test(key))?.[0];
    if (value === undefined || name === undefined) continue;
    const label = labelIn(match);
    const best = match?.["best"];
    const stars = (value / Number(best ?? 5)) * 5;
    const isRating = rating === "" ? ratingNames.has(label) : label !== "" && Math.abs(stars - Number(rating)) <= 0.5;
    if (isRating) return { at, value: withScale(value, best), name };
  }
  return undefined;
}

/** `Note : 4,3` → `note`. */
const labelIn = (match: RatingLine): string => (match?.["label"] ?? "").replace(/[:：]/, "").trim().toLowerCase();

/** `8.5/10`. The usual scale up to 5 is left out. */
function withScale(value: number, best: string | undefined): string {
  return best === undefined || best === "5" ? String(value) : `${value}/${best}`;
}

/** The number of votes by its English name. SerpApi sometimes repeats the rating there. */
function namedCount(detected: Numbers): string {
  const count = toText(detected.get("reviews")) || toText(detected.get("votes"));
  return /^\d+$/.test(count) ? count : "";
}

/** The votes in the line after the rating, if SerpApi recognized them under any name. */
function countIn(
  line: string | undefined,
  detected: Numbers,
  ratingName: string,
): { count: string; rest: string } | undefined {
  const groups = groupsOf(countLine, line ?? "");
  const count = groups?.["count"]?.replace(/\D/g, "") ?? "";
  const isKnown = [...detected].some(([name, number]) => name !== ratingName && toText(number) === count);
  return isKnown ? { count, rest: groups?.["rest"]?.trim() ?? "" } : undefined;
}

function toNumber(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits.replace(/[,٫]/, "."));
}

function groupsOf(pattern: RegExp, line: string): Record<string, string> | undefined {
  if (line.length > lineCharactersMax) return undefined;
  const ascii = line.replace(otherDigits, (digit) => {
    const point = digit.codePointAt(0) ?? 0;
    return String((point - (point < 0x900 ? 0 : 6)) % 16);
  });
  return pattern.exec(ascii)?.groups;
}

import type { ResultType } from "../../../shared/results.ts";
import { buildElement, filled, joinWithDots, ratingText, type RawLink } from "../build-element.ts";
import { isOnGoogle, plainUrl } from "../sanitize.ts";
import type { Element } from "../provider.ts";
import { type Fields, isObject, readRows, toFields } from "../read-rows.ts";

type RowFields = {
  /** The first of these that is filled is the title. */
  title: readonly string[];
  /** The first of these that is filled is the URL. */
  url: readonly string[];
  /** The fields of the description, in order. `rating` stands for the rating with its votes. */
  texts: readonly string[];
};
/** The fields that a kind of row has. The others are kept too, with their names. */
type RowKind = RowFields & { known: ReadonlySet<string> };

/** Not texts of the page: ids and further pages of Google, addresses and sizes of pictures, the place in a list, coordinates. */
const omittedField =
  /^(?:cid|fid|position|latitude|longitude|domain|(?:.*[a-z])?(?:Url|Link|Id|Width|Height|Highlighted))$/;
const address = /^(?:https?:|data:|\/)/i;
const attributesField = "attributes";
const usualScale = "5";

function rowKind(fields: RowFields): RowKind {
  return { ...fields, known: knownFields(...fields.title, ...fields.url, ...fields.texts) };
}

/** These fields, and those of a rating and the attributes, which are always read together. */
function knownFields(...names: readonly string[]): ReadonlySet<string> {
  return new Set([...names, "rating", "ratingMax", "ratingType", "ratingCount", attributesField]);
}

/** The first of these fields that is filled. A number counts as a text; "" if all are missing or have another form. */
export function textIn(row: Fields, ...names: readonly string[]): string {
  for (const name of names) {
    const text = toText(row[name]);
    if (text !== "") return text;
  }
  return "";
}

/** A row as a link with all its texts; undefined if it has neither title nor URL. A bare text is a title. */
function toLink(value: unknown, kind: RowKind): RawLink | undefined {
  if (typeof value === "string" && value.trim() !== "") return { title: value };
  if (!isObject(value)) return undefined;
  const title = textIn(value, ...kind.title);
  const url = textIn(value, ...kind.url);
  if (`${title}${url}`.trim() === "") return undefined;
  return { title, url, description: joinWithDots(...descriptionOf(value, kind)) };
}

/** `8.5/10 (1,234)`. The scale is left out if it ends at five. */
function starsOf(row: Fields): string {
  const rating = textIn(row, "rating");
  const scale = textIn(row, "ratingMax");
  const isUsual = rating === "" || scale === "" || scale === usualScale || rating.includes("/");
  return ratingText(isUsual ? rating : `${rating}/${scale}`, textIn(row, "ratingCount"));
}

/** The attributes as Google displays them, `Brand: Nimbus`, and every unknown field with its name, `old price: $120`. */
function otherLines(row: Fields, known: ReadonlySet<string>): string[] {
  const attributes = row[attributesField];
  const lines = isObject(attributes) ? Object.entries(attributes).flatMap(([name, value]) => line(name, value)) : [];
  for (const name of Object.keys(row))
    if (!known.has(name) && !omittedField.test(name)) lines.push(...line(wordsOf(name), row[name]));
  return lines;
}

function descriptionOf(row: Fields, { title, texts, known }: RowKind): string[] {
  const titleField = title.find((name) => toText(row[name]) !== "");
  const own = texts.filter((name) => name !== titleField);
  return [...own.map((name) => (name === "rating" ? starsOf(row) : textWithin(row[name]))), ...otherLines(row, known)];
}

function line(name: string, value: unknown): string[] {
  const text = textWithin(value);
  return text === "" || address.test(text) ? [] : [`${name}: ${text}`];
}

/** A text, a list of tags, or the hours by day, as one text; "" for anything deeper. */
function textWithin(value: unknown): string {
  if (Array.isArray(value)) return filled(value.map(toText)).join(", ");
  if (!isObject(value)) return toText(value);
  const parts = Object.entries(value).filter(([, part]) => toText(part) !== "");
  return parts.map(([name, part]) => `${name}: ${toText(part)}`).join(", ");
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** `oldPrice` → `old price`. */
const wordsOf = (name: string): string => name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** What was read of a field. Absent if the field has an unexpected form. */
type ReadField = { elements: Element[]; unreadableRows: number } | undefined;
type FieldReader = (value: unknown) => ReadField;

type Features = {
  above: Element[];
  below: Element[];
  unreadableRows: number;
  /** Whether there is an element of a kind that Serper is known to return. */
  hasKnown: boolean;
};

/**
 * Serper does not report the position of these elements. Each kind is placed where Google usually shows it: above or below
 * the organic results, or at the end of the page.
 */
const readersAbove: Record<string, FieldReader> = {
  ads: readAds,
  answerBox: objectReader(readAnswerBox),
  knowledgeGraph: objectReader(readKnowledgeGraph),
  topStories: groupReader("top_stories", { title: ["title"], url: ["link"], texts: ["source", "date", "snippet"] }),
  places: groupReader("local_pack", {
    title: ["title"],
    url: ["website", "link"],
    texts: ["rating", "priceLevel", "category", "type", "address", "openingHours", "phoneNumber", "description"],
  }),
};
const readersBelow: Record<string, FieldReader> = {
  peopleAlsoAsk: groupReader("people_also_ask", {
    title: ["question", "title"],
    url: ["link"],
    texts: ["snippet", "title", "source", "date"],
  }),
  images: groupReader("images", { title: ["title"], url: ["link", "imageUrl"], texts: ["source"] }),
  videos: groupReader("video", {
    title: ["title"],
    url: ["link"],
    texts: ["source", "channel", "date", "duration", "snippet"],
  }),
  shopping: groupReader("shopping", {
    title: ["title"],
    url: ["link"],
    texts: ["price", "source", "rating", "delivery", "snippet"],
  }),
  discussions: groupReader("discussions", { title: ["title"], url: ["link"], texts: ["source", "date", "snippet"] }),
};
const readersAtEnd: Record<string, FieldReader> = {
  relatedSearches: groupReader("related_searches", { title: ["query", "title"], url: ["link"], texts: [] }),
};
const knownReaders = { ...readersAbove, ...readersBelow, ...readersAtEnd };

/** Fields about the request instead of the page. */
const requestFields = new Set(["organic", "searchParameters", "searchInformation", "credits", "message", "statusCode"]);
const unknownKind = rowKind({
  title: ["title", "question", "query", "name"],
  url: ["link", "website", "url"],
  texts: ["snippet", "description", "source", "date", "rating"],
});
const answerBoxFields = knownFields("title", "answer", "snippet", "link", "date");
const panelFields = knownFields("title", "type", "website", "description", "descriptionSource", "descriptionLink");
const unknownFields = knownFields("title", "snippet", "description", "link");

/** The elements around the organic results. Unknown kinds stand before the related searches. */
export function readFeatures(answer: Fields): Features {
  const above = readAll(readersAbove, answer);
  const below = readAll(readersBelow, answer);
  const atEnd = readAll(readersAtEnd, answer);
  const unknown = Object.keys(answer)
    .filter((name) => !requestFields.has(name) && !Object.hasOwn(knownReaders, name))
    .flatMap((name) => readOther(name, answer[name]));
  return {
    above: [...readSuggestedKeyword(answer), ...above.elements],
    below: [...below.elements, ...unknown, ...atEnd.elements],
    unreadableRows: above.unreadableRows + below.unreadableRows + atEnd.unreadableRows,
    hasKnown: above.hasKnown || below.hasKnown || atEnd.hasKnown,
  };
}

/** A known element in an unexpected form is read like an unknown one, so that a change of one element does not cost the page. */
function readAll(readers: Record<string, FieldReader>, answer: Fields) {
  const elements: Element[] = [];
  let unreadableRows = 0;
  let hasKnown = false;
  for (const [name, read] of Object.entries(readers)) {
    const value = answer[name];
    if (value === undefined || value === null) continue;
    const found = read(value);
    elements.push(...(found?.elements ?? readOther(name, value)));
    unreadableRows += found?.unreadableRows ?? 0;
    hasKnown ||= (found?.elements.length ?? 0) > 0;
  }
  return { elements, unreadableRows, hasKnown };
}

function groupReader(type: ResultType, fields: RowFields): FieldReader {
  const kind = rowKind(fields);
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const { found, unreadableRows } = readRows(value, (row) => toLink(row, kind));
    return { elements: found.length === 0 ? [] : [buildElement(type, { siteLinks: found })], unreadableRows };
  };
}

function readAds(value: unknown): ReadField {
  if (!Array.isArray(value)) return undefined;
  const { found, unreadableRows } = readRows(value, (ad) => readOrganicRow("paid", ad));
  return { elements: found, unreadableRows };
}

function objectReader(read: (row: Fields) => Element | undefined): FieldReader {
  return (value) => {
    const element = isObject(value) ? read(value) : undefined;
    return element && { elements: [element], unreadableRows: 0 };
  };
}

/** An answer is a featured snippet if it is quoted from a page. A page of Google's search is no source: that answer is Google's own. */
function readAnswerBox(box: Fields): Element | undefined {
  const highlighted = box["snippetHighlighted"];
  const words = Array.isArray(highlighted) ? highlighted.filter((part) => typeof part === "string").join(" ") : "";
  const answer = textIn(box, "answer");
  const snippet = textIn(box, "snippet") || words;
  const url = plainUrl(textIn(box, "link"));
  if ((textIn(box, "title", "link") || answer || snippet) === "") return undefined;
  return buildElement(url === "" || isOnGoogle(url) ? "answer_box" : "featured_snippet", {
    title: textIn(box, "title"),
    url,
    description: snippet || answer,
    top: [snippet === "" ? "" : answer, textIn(box, "date")],
    bottom: otherLines(box, answerBoxFields),
  });
}

/** A knowledge panel has no URL of its own: the site of the entity and its source are among its links. */
function readKnowledgeGraph(panel: Fields): Element | undefined {
  const title = textIn(panel, "title");
  const description = textIn(panel, "description");
  const website = textIn(panel, "website");
  const bottom = otherLines(withoutLists(panel), panelFields);
  if ((title || description) === "" && bottom.length === 0) return undefined;
  return buildElement("knowledge_graph", {
    title,
    description,
    top: [textIn(panel, "type"), starsOf(panel)],
    bottom,
    siteLinks: [
      { title: website && title, url: website },
      { title: textIn(panel, "descriptionSource"), url: textIn(panel, "descriptionLink") },
      ...toLinks(rowsWithin(panel)),
    ],
  });
}

/** `Did you mean`, as the element that it is on the page: Google searched the keyword as typed. */
function readSuggestedKeyword(answer: Fields): Element[] {
  const suggested = textIn(toFields(answer["searchInformation"]), "didYouMean");
  return suggested === "" ? [] : [buildElement("other", { title: "didYouMean", siteLinks: [{ title: suggested }] })];
}

/** An element of an unknown kind: its own texts, and its rows as links; nothing if it has neither. */
function readOther(name: string, value: unknown): Element[] {
  const own = toFields(value);
  const links = toLinks(Array.isArray(value) ? value.flat() : rowsWithin(own));
  if (links.length === 0 && textIn(own, "title", "snippet", "description", "link") === "") return [];
  return [
    buildElement(name === "aiOverview" ? "ai_overview" : "other", {
      title: textIn(own, "title") || name,
      url: textIn(own, "link"),
      description: textIn(own, "snippet", "description"),
      bottom: otherLines(withoutLists(own), unknownFields),
      siteLinks: links,
    }),
  ];
}

const toLinks = (rows: readonly unknown[]): RawLink[] => readRows(rows, (row) => toLink(row, unknownKind)).found;

function withoutLists(object: Fields): Fields {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => !Array.isArray(value)));
}

/** The members of all lists in an object. */
const rowsWithin = (object: Fields): unknown[] => Object.values(object).filter(Array.isArray).flat();

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

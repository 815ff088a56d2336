import { z } from "zod";
import type { ResultType } from "../../results.ts";
import { buildElement, joinWithDots, type RawLink, ratingText } from "../build-element.ts";
import type { Element } from "../provider.ts";

/** A text, or a number as text; "" if it is missing or null. */
export const text = z
  .union([z.string(), z.number().transform(String)])
  .nullish()
  .transform((value) => value ?? "");

/** The rows of all grouped elements: each kind has some of these fields. */
const row = z.object({
  title: text,
  question: text,
  query: text,
  link: text,
  website: text,
  imageUrl: text,
  snippet: text,
  source: text,
  channel: text,
  date: text,
  duration: text,
  price: text,
  rating: text,
  ratingCount: text,
  category: text,
  address: text,
});
type Row = z.infer<typeof row>;
const rows = z.array(row);

const answerBox = z.object({ title: text, answer: text, snippet: text, link: text });
const anyObject = z.looseObject({});
const knowledgeGraph = z.object({
  title: text,
  type: text,
  website: text,
  description: text,
  descriptionSource: text,
  descriptionLink: text,
  attributes: z.record(z.string(), text).catch({}),
});

type Features = Readonly<Record<string, unknown>>;
type FeatureReader = (value: unknown) => Element[] | undefined;

/**
 * Serper does not report the position of these elements. Each kind is placed where Google usually shows it: above or below
 * the organic results, or at the end of the page.
 */
const readersAbove: Record<string, FeatureReader> = {
  ads: (value) =>
    rows
      .safeParse(value)
      .data?.map((ad) => buildElement("paid", { title: ad.title, url: ad.link, description: ad.snippet })),
  answerBox: readAnswerBox,
  knowledgeGraph: readKnowledgeGraph,
  topStories: group("top_stories", (story) => ({
    title: story.title,
    url: story.link,
    description: joinWithDots(story.source, story.date),
  })),
  places: group("local_pack", (business) => ({
    title: business.title,
    url: business.website || business.link,
    description: joinWithDots(ratingText(business.rating, business.ratingCount), business.category, business.address),
  })),
};
const readersBelow: Record<string, FeatureReader> = {
  peopleAlsoAsk: group("people_also_ask", (question) => ({
    title: question.question || question.title,
    url: question.link,
    description: question.snippet,
  })),
  images: group("images", (image) => ({
    title: image.title,
    url: image.link || image.imageUrl,
    description: image.source,
  })),
  videos: group("video", (video) => ({
    title: video.title,
    url: video.link,
    description: joinWithDots(video.source, video.channel, video.date, video.duration),
  })),
  shopping: group("shopping", (product) => ({
    title: product.title,
    url: product.link,
    description: joinWithDots(product.price, product.source, ratingText(product.rating, product.ratingCount)),
  })),
  discussions: group("discussions", (thread) => ({
    title: thread.title,
    url: thread.link,
    description: joinWithDots(thread.source, thread.date),
  })),
};
const readersAtEnd: Record<string, FeatureReader> = {
  relatedSearches: group("related_searches", (related) => ({
    title: related.query || related.title,
    url: related.link,
  })),
};
/** Fields about the request instead of the page. */
const requestFields = new Set(["searchParameters", "searchInformation", "credits", "message", "statusCode"]);

/** The elements above the organic results. */
export function featuresAbove(features: Features): Element[] {
  return readAll(readersAbove, features);
}

/** The elements below the organic results: known kinds, then unknown kinds, then the related searches. */
export function featuresBelow(features: Features): Element[] {
  const isUnknown = (name: string) =>
    !requestFields.has(name) && ![readersAbove, readersBelow, readersAtEnd].some((known) => Object.hasOwn(known, name));
  const unknown = Object.keys(features)
    .filter(isUnknown)
    .flatMap((name) => readOther(name, features[name]));
  return [...readAll(readersBelow, features), ...unknown, ...readAll(readersAtEnd, features)];
}

/** A known element in an unexpected form is read like an unknown one: a change of one element must not cost the whole page. */
function readAll(readers: Record<string, FeatureReader>, features: Features): Element[] {
  return Object.entries(readers).flatMap(([name, read]) => {
    const value = features[name];
    return value === undefined || value === null ? [] : (read(value) ?? readOther(name, value));
  });
}

function group(type: ResultType, toLink: (row: Row) => RawLink): FeatureReader {
  return (value) => {
    const list = rows.safeParse(value).data;
    return list?.length === 0 ? [] : list && [buildElement(type, { siteLinks: list.map(toLink) })];
  };
}

function readAnswerBox(value: unknown): Element[] | undefined {
  const box = answerBox.safeParse(value).data;
  if (box === undefined || (box.title || box.answer || box.snippet || box.link) === "") return undefined;
  const { title, answer, snippet, link } = box;
  return [
    buildElement(link === "" ? "answer_box" : "featured_snippet", {
      title,
      url: link,
      description: snippet || answer,
      top: snippet === "" ? [] : [answer],
    }),
  ];
}

/** A knowledge panel has no URL of its own: the site of the entity and its source are among its links. */
function readKnowledgeGraph(knowledge: unknown): Element[] | undefined {
  const panel = knowledgeGraph.safeParse(knowledge).data;
  if (panel === undefined || (panel.title || panel.description) === "") return undefined;
  return [
    buildElement("knowledge_graph", {
      title: panel.title,
      description: panel.description,
      top: [panel.type],
      bottom: Object.entries(panel.attributes).map(([name, value]) => `${name}: ${value}`),
      siteLinks: [
        { title: panel.website && panel.title, url: panel.website },
        { title: panel.descriptionSource, url: panel.descriptionLink },
      ],
    }),
  ];
}

/** An element of an unknown kind: its own texts, and its rows as links; nothing if it has neither. */
function readOther(name: string, value: unknown): Element[] {
  const own = row.safeParse(value).data;
  const values = Array.isArray(value)
    ? value
    : Object.values(anyObject.safeParse(value).data ?? {}).filter(Array.isArray);
  const links = values.flat().flatMap(genericLink);
  const isEmpty = links.length === 0 && (own === undefined || (own.title || own.snippet || own.link) === "");
  if (isEmpty) return [];
  return [
    buildElement("other", {
      title: own?.title || name,
      url: own?.link ?? "",
      description: own?.snippet ?? "",
      siteLinks: links,
    }),
  ];
}

/** A row of an unknown kind as a link; nothing if it has neither a name nor a URL. */
function genericLink(value: unknown): RawLink[] {
  if (typeof value === "string") return [{ title: value }];
  const parsed = row.safeParse(value).data;
  if (parsed === undefined) return [];
  const { question, query, link, snippet, source, date } = parsed;
  const title = parsed.title || question || query;
  return (title || link) === "" ? [] : [{ title, url: link, description: snippet || joinWithDots(source, date) }];
}

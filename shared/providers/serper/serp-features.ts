import { z } from "zod";
import type { ResultType } from "../../results.ts";
import { buildElement, type RawLink, ratingText } from "../build-element.ts";
import type { Element } from "../provider.ts";

/** A text that may be missing, null or a number. */
export const text = z
  .union([z.string(), z.number().transform(String)])
  .nullish()
  .transform((value) => value ?? "");

/** The rows of all grouped elements: each kind fills some of these. */
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

/** Serper does not tell where on the page an element stood, so each kind has its usual place above or below the organic results. */
const above: Record<string, FeatureReader> = {
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
  places: group("local_pack", (place) => ({
    title: place.title,
    url: place.website || place.link,
    description: joinWithDots(ratingText(place.rating, place.ratingCount), place.category, place.address),
  })),
};
const below: Record<string, FeatureReader> = {
  peopleAlsoAsk: group("people_also_ask", (asked) => ({
    title: asked.question || asked.title,
    url: asked.link,
    description: asked.snippet,
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
const last: Record<string, FeatureReader> = {
  relatedSearches: group("related_searches", (related) => ({
    title: related.query || related.title,
    url: related.link,
  })),
};
/** What speaks about the request and not about the page. */
const notOnThePage = new Set(["searchParameters", "searchInformation", "credits", "message", "statusCode"]);

/** The elements that stand above the organic results. */
export function featuresBefore(features: Features): Element[] {
  return readAll(above, features);
}

/** The elements that stand below them: the known, then whatever is new, then the related searches. */
export function featuresAfter(features: Features): Element[] {
  const isNew = (name: string) =>
    !notOnThePage.has(name) && ![above, below, last].some((known) => Object.hasOwn(known, name));
  const others = Object.keys(features)
    .filter(isNew)
    .flatMap((name) => readOther(name, features[name]));
  return [...readAll(below, features), ...others, ...readAll(last, features)];
}

/** A known element in an unknown form is kept like an unknown one: nobody should lose a page over a side dish. */
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

/** A panel is no link, whatever site the entity has; its site and its source are among its links. */
function readKnowledgeGraph(value: unknown): Element[] | undefined {
  const panel = knowledgeGraph.safeParse(value).data;
  if (panel === undefined || (panel.title || panel.description) === "") return undefined;
  return [
    buildElement("knowledge_graph", {
      title: panel.title,
      description: panel.description,
      top: [panel.type],
      bottom: Object.entries(panel.attributes).map(([name, words]) => `${name}: ${words}`),
      siteLinks: [
        { title: panel.website && panel.title, url: panel.website },
        { title: panel.descriptionSource, url: panel.descriptionLink },
      ],
    }),
  ];
}

/** Something new: its rows as links, or its own texts; nothing where it holds neither. */
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

function genericLink(value: unknown): RawLink[] {
  if (typeof value === "string") return [{ title: value }];
  const found = row.safeParse(value).data;
  if (found === undefined) return [];
  const title = found.title || found.question || found.query;
  return title === "" && found.link === ""
    ? []
    : [{ title, url: found.link, description: found.snippet || joinWithDots(found.source, found.date) }];
}

/** `Source · 2 days ago`. */
function joinWithDots(...words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
}

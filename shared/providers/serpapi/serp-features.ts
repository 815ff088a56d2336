import { z } from "zod";
import type { ResultType } from "../../results.ts";
import { buildElement, type RawLink, ratingText } from "../build-element.ts";
import type { Element } from "../provider.ts";
import {
  factLines,
  isNotDisplayed,
  joinWithDots,
  listOf,
  membersMax,
  genericLink,
  optionalPart,
  type Row,
  row,
  toRows,
  siteLinks,
  text,
  textOfBlocks,
} from "./row-schemas.ts";

type Features = Readonly<Record<string, unknown>>;
type FeatureReader = (value: unknown) => Element[] | undefined;

/** SerpApi does not tell where on the page an element stood, so each kind has its usual place above or below the organic results. */
const above: Record<string, FeatureReader> = {
  ads: (value) => {
    const ads = toRows(value);
    return ads.length === 0 ? undefined : ads.filter((ad) => !isBelow(ad)).map(paid);
  },
  ai_overview: readAiOverview,
  answer_box: readAnswerBox,
  knowledge_graph: readKnowledgeGraph,
  shopping_results: group("shopping", productLink),
  inline_shopping_results: group("shopping", productLink),
  top_stories: group("top_stories", newsLink),
  news_results: group("top_stories", newsLink),
  local_ads: group("local_pack", placeLink),
  local_results: group("local_pack", placeLink),
};
const below: Record<string, FeatureReader> = {
  related_questions: group("people_also_ask", (asked) => ({
    title: asked.question || asked.title,
    url: asked.link || asked.references[0]?.link || asked.more_results_link,
    description: asked.snippet || asked.list.join(" ") || textOfBlocks(asked.text_blocks),
  })),
  inline_images: group("images", imageLink),
  inline_videos: group("video", videoLink),
  inline_video_carousels: group("video", videoLink),
  short_videos: group("video", videoLink),
  immersive_products: readProducts,
  discussions_and_forums: group("discussions", newsLink),
  perspectives: group("discussions", newsLink),
};
const last: Record<string, FeatureReader> = {
  ads: (value) => toRows(value).filter(isBelow).map(paid),
  related_searches: group("related_searches", ({ query, title, link }) => ({ title: query || title, url: link })),
};
/** What speaks about the request and not about the page; and the organic results, which are read elsewhere. */
const notAFeature = new Set([
  "search_metadata",
  "search_parameters",
  "search_information",
  "serp_api_data",
  "pagination",
  "serpapi_pagination",
  "error",
  "organic_results",
]);

/** The elements that stand above the organic results. */
export function featuresBefore(features: Features): Element[] {
  return readAll(above, features);
}

/** The elements that stand below them: the known, then whatever is new, then ads and the related searches. */
export function featuresAfter(features: Features): Element[] {
  const isKnown = (name: string) => [above, below, last].some((known) => Object.hasOwn(known, name));
  // The map shows the places of the local results, and is no element besides.
  const isTheirMap = (name: string) => /^(local_)?map$/.test(name) && features["local_results"] !== undefined;
  const others = Object.keys(features).filter((name) => !isKnown(name) && !notAFeature.has(name) && !isTheirMap(name));
  return [
    ...readAll(below, features),
    ...others.flatMap((name) => readOther(name, features[name])),
    ...readAll(last, features),
  ];
}

/** A known element in an unknown form is kept like an unknown one: nobody should lose a page over a side dish. */
function readAll(readers: Record<string, FeatureReader>, features: Features): Element[] {
  return Object.entries(readers).flatMap(([name, read]) => {
    const value = features[name];
    return read(value) ?? readOther(name, value);
  });
}

function group(type: ResultType, toLink: (member: Row) => RawLink): FeatureReader {
  return (value) => {
    const rows = toRows(value);
    return rows.length === 0 ? undefined : [buildElement(type, { siteLinks: rows.map(toLink) })];
  };
}

function isBelow({ block_position }: Row): boolean {
  return block_position === "bottom";
}

function paid(ad: Row): Element {
  return buildElement("paid", {
    title: ad.title,
    url: ad.link,
    breadcrumb: ad.displayed_link,
    description: ad.description || ad.snippet,
    top: [ratingText(ad.rating, ad.reviews), ad.price],
    bottom: ad.extensions,
    siteLinks: ad.sitelinks,
  });
}

/** The products of a page stand in several blocks, and each product names its own. */
function readProducts(value: unknown): Element[] | undefined {
  const blocks = [...Map.groupBy(toRows(value), ({ category }) => category)];
  if (blocks.length === 0) return undefined;
  return blocks.map(([title, products]) => buildElement("shopping", { title, siteLinks: products.map(productLink) }));
}

function productLink({ title, link, product_link, price, source, rating, reviews }: Row): RawLink {
  return { title, url: link || product_link, description: joinWithDots(price, source, ratingText(rating, reviews)) };
}

function newsLink({ title, link, source, date }: Row): RawLink {
  return { title, url: link, description: joinWithDots(source, date) };
}

function videoLink({ title, link, platform, source, channel, date, duration }: Row): RawLink {
  return { title, url: link, description: joinWithDots(platform || source, channel, date, duration) };
}

/** Where their `source` is an address, it is the page with the image, and their `link` only leads back to Google. */
function imageLink({ title, link, source, source_name }: Row): RawLink {
  const isAddress = /^https?:/i.test(source);
  return { title, url: isAddress ? source : link, description: source_name || (isAddress ? "" : source) };
}

function placeLink({ title, link, website, links, rating, reviews, price, type, address }: Row): RawLink {
  const description = joinWithDots(ratingText(rating, reviews), price, type, address);
  return { title, url: links.website || website || link, description };
}

const aiOverview = row.extend({ page_token: text });

/** Some overviews would take a second search to read. That there is one is told all the same. */
function readAiOverview(value: unknown): Element[] | undefined {
  const overview = aiOverview.safeParse(value).data;
  const description = textOfBlocks(overview?.text_blocks);
  if (overview === undefined || (description || overview.page_token) === "") return undefined;
  const links = overview.references.map(({ title, link, snippet, source }) => ({
    title,
    url: link,
    description: snippet || source,
  }));
  return [buildElement("ai_overview", { description, siteLinks: links })];
}

const answerBox = z.looseObject({
  type: text,
  title: text,
  link: text,
  displayed_link: text,
  answer: text,
  result: text,
  snippet: text,
  date: text,
  list: listOf(z.string()),
  definitions: listOf(z.string()),
  sitelinks: siteLinks,
});

/** Weather, stocks and the like come as facts of many names. */
function readAnswerBox(value: unknown): Element[] | undefined {
  const box = answerBox.safeParse(value).data;
  if (box === undefined) return undefined;
  const { type, title, link, displayed_link, answer, result, snippet, date, list, definitions, ...rest } = box;
  const { sitelinks, ...facts } = rest;
  const short = answer || result;
  const long = snippet || list.join(" ") || definitions.join(" ");
  const bottom = factLines(facts);
  if ((title || link || short || long) === "" && bottom.length === 0) return undefined;
  return [
    buildElement(link === "" ? "answer_box" : "featured_snippet", {
      title: title || (bottom.length === 0 ? "" : type.replaceAll("_", " ")),
      url: link,
      breadcrumb: displayed_link,
      description: long || short,
      top: [long === "" ? "" : short, date],
      bottom,
      siteLinks: sitelinks,
    }),
  ];
}

const knowledgeGraph = z.looseObject({
  title: text,
  type: text,
  description: text,
  website: text,
  rating: text,
  reviews: text,
  review_count: text,
  source: optionalPart(z.object({ name: text, link: text }), { name: "", link: "" }),
});

/** A panel is no link, whatever site the entity has; its site, its source and whatever it lists are among its links. */
function readKnowledgeGraph(value: unknown): Element[] | undefined {
  const panel = knowledgeGraph.safeParse(value).data;
  if (panel === undefined || (panel.title || panel.description) === "") return undefined;
  const { title, type, description, website, rating, reviews, review_count, source, ...facts } = panel;
  return [
    buildElement("knowledge_graph", {
      title,
      description,
      top: [type, ratingText(rating, reviews || review_count)],
      bottom: factLines(facts),
      siteLinks: [
        { title: website && title, url: website },
        { title: source.name, url: source.link },
        ...toRows(facts).flatMap(genericLink),
      ],
    }),
  ];
}

/** Something new: its own texts, and its rows as links, or the rows of its parts. */
function readOther(name: string, value: unknown): Element[] {
  const words = text.parse(value);
  const isPart = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  // A lone `top_stories_link` or its like belongs to an element, and is none.
  if (!isPart && (words === "" || isNotDisplayed(name))) return [];
  const own = row.safeParse(value).data;
  const links = toRows(value).flatMap(genericLink);
  const linksOfParts = Array.isArray(value) ? value.slice(0, membersMax).flatMap(toRows).flatMap(genericLink) : [];
  return [
    buildElement("other", {
      title: own?.title || name,
      url: own?.link ?? "",
      description: words || own?.snippet || own?.description || "",
      siteLinks: links.length > 0 ? links : linksOfParts,
    }),
  ];
}

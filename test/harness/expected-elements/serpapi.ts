import type { ResultType } from "../../../shared/results.ts";
import {
  type ExpectedElement,
  type ExpectedPage,
  expectElement,
  isRaw,
  hasText,
  type Raw,
  toRaw,
  toRows,
} from "./expected-elements.ts";

const groups: Readonly<Record<string, ResultType>> = {
  shopping_results: "shopping",
  inline_shopping_results: "shopping",
  top_stories: "top_stories",
  news_results: "top_stories",
  local_ads: "local_pack",
  local_results: "local_pack",
  related_questions: "people_also_ask",
  inline_images: "images",
  inline_videos: "video",
  inline_video_carousels: "video",
  short_videos: "video",
  discussions_and_forums: "discussions",
  perspectives: "discussions",
  related_searches: "related_searches",
};
/** A map belongs to its places. */
const notOnThePage = /^(search_.*|serp_api_data|(serpapi_)?pagination|(local_)?map|error)$/;

/** What an answer of SerpApi holds; undefined where it is no page. */
export function expectFromSerpapi(answer: Raw): ExpectedPage | undefined {
  const { organic_results, ads, ai_overview, answer_box, knowledge_graph, immersive_products, ...rest } = answer;
  if (!Array.isArray(organic_results)) return undefined;
  const others = Object.entries(rest).filter(([name]) => !notOnThePage.test(name));
  const blocks = new Set(toRows(immersive_products).map(({ category }) => category));
  const total = toRaw(answer["search_information"])["total_results"];
  return {
    elements: [
      ...toRows(organic_results).map(organicOf),
      // Those on top come first.
      ...toRows(ads).map(adOf),
      ...(hasText(ai_overview) ? [overviewOf(toRaw(ai_overview))] : []),
      ...(hasText(answer_box) ? [boxOf(toRaw(answer_box))] : []),
      ...(hasText(knowledge_graph) ? [panelOf(toRaw(knowledge_graph))] : []),
      ...others.flatMap(([name, value]) => otherOf(groups[name] ?? "other", value)),
      ...[...blocks].map((title) => expectElement("shopping", { title, siteLinks: immersive_products })),
    ],
    // One that is no greater than the page refutes itself.
    hasTotal: Number(total ?? 0) > organic_results.length,
  };
}

function organicOf(row: Raw): ExpectedElement {
  const { top, bottom } = toRaw(row["rich_snippet"]);
  const lines = Array.isArray(row["extensions"]) ? row["extensions"] : [];
  return expectElement("organic", {
    title: row["title"],
    url: row["link"],
    breadcrumb: row["displayed_link"],
    description: row["snippet"],
    "richSnippet.top": [row["date"], row["author"], row["price"], row["rating"], top],
    // Of its own lines the rating stands above.
    "richSnippet.bottom": [bottom, lines.filter((words) => !/^(Rating|\d\.\d \(?\d+\)?)$/.test(String(words)))],
    siteLinks: row["sitelinks"],
  });
}

function adOf({
  title,
  link,
  displayed_link,
  description,
  rating,
  price,
  extensions,
  sitelinks,
}: Raw): ExpectedElement {
  return expectElement("paid", {
    title,
    url: link,
    breadcrumb: displayed_link,
    description,
    "richSnippet.top": [rating, price],
    "richSnippet.bottom": extensions,
    siteLinks: sitelinks,
  });
}

function overviewOf({ text_blocks, references }: Raw): ExpectedElement {
  return expectElement("ai_overview", { description: text_blocks, siteLinks: references });
}

function boxOf({ title, link, displayed_link, answer, result, snippet, list, date }: Raw): ExpectedElement {
  const description = [answer, result, snippet, list];
  const type = hasText(link) ? "featured_snippet" : "answer_box";
  return expectElement(hasText([title, link, description]) ? type : "other", {
    title,
    url: link,
    breadcrumb: displayed_link,
    description,
    "richSnippet.top": date,
  });
}

function panelOf({ title, type, description, rating, website, source }: Raw): ExpectedElement {
  const siteLinks = [website, toRaw(source)["link"]];
  return expectElement("knowledge_graph", { title, description, "richSnippet.top": [type, rating], siteLinks });
}

function otherOf(type: ResultType, value: unknown): ExpectedElement[] {
  if (!hasText(value)) return [];
  const siteLinks = isRaw(value) ? Object.values(value).filter(Array.isArray) : value;
  return [expectElement(type, { title: toRaw(value)["title"], siteLinks })];
}

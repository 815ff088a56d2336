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
/** Fields about the request, and the map, which belongs to the local results. */
const otherFields = /^(search_.*|serp_api_data|(serpapi_)?pagination|(local_)?map|error)$/;

/** The elements expected from an answer of SerpApi; undefined if it is not a page. */
export function expectFromSerpapi(answer: Raw): ExpectedPage | undefined {
  const { organic_results, ads, ai_overview, answer_box, knowledge_graph, immersive_products, ...rest } = answer;
  if (!Array.isArray(organic_results)) return undefined;
  const others = Object.entries(rest).filter(([name]) => !otherFields.test(name));
  const blocks = new Set(toRows(immersive_products).map(({ category }) => category));
  const total = toRaw(answer["search_information"])["total_results"];
  return {
    elements: [
      ...toRows(organic_results).map(expectOrganic),
      // Ads at the top come first.
      ...toRows(ads).map(expectAd),
      ...(hasText(ai_overview) ? [expectOverview(toRaw(ai_overview))] : []),
      ...(hasText({ ...toRaw(answer_box), type: "" }) ? [expectAnswerBox(toRaw(answer_box))] : []),
      ...(hasText(knowledge_graph) ? [expectPanel(toRaw(knowledge_graph))] : []),
      ...others.flatMap(([name, value]) => expectOther(groups[name] ?? "other", value)),
      ...[...blocks].map((title) => expectElement("shopping", { title, siteLinks: immersive_products })),
    ],
    // A total that is not larger than the page is wrong.
    hasTotal: Number(total ?? 0) > organic_results.length,
  };
}

function expectOrganic(row: Raw): ExpectedElement {
  const { top, bottom } = toRaw(row["rich_snippet"]);
  const lines = Array.isArray(row["extensions"]) ? row["extensions"] : [];
  return expectElement("organic", {
    title: row["title"],
    url: row["link"],
    breadcrumb: row["displayed_link"],
    description: row["snippet"],
    "richSnippet.top": [row["date"], row["author"], row["price"], row["rating"], top],
    // The rating among these lines is displayed above the snippet.
    "richSnippet.bottom": [bottom, lines.filter((words) => !/^(Rating|\d\.\d \(?\d+\)?)$/.test(String(words)))],
    siteLinks: row["sitelinks"],
  });
}

function expectAd({
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

function expectOverview({ text_blocks, references }: Raw): ExpectedElement {
  return expectElement("ai_overview", { description: text_blocks, siteLinks: references });
}

function expectAnswerBox({ title, link, displayed_link, answer, result, snippet, list, date }: Raw): ExpectedElement {
  const description = [answer, result, snippet, list];
  return expectElement(hasText(link) ? "featured_snippet" : "answer_box", {
    title,
    url: link,
    breadcrumb: displayed_link,
    description,
    "richSnippet.top": date,
  });
}

function expectPanel({ title, type, description, rating, website, source }: Raw): ExpectedElement {
  const siteLinks = [website, toRaw(source)["link"]];
  return expectElement("knowledge_graph", { title, description, "richSnippet.top": [type, rating], siteLinks });
}

function expectOther(type: ResultType, value: unknown): ExpectedElement[] {
  if (!hasText(value)) return [];
  const siteLinks = isRaw(value) ? Object.values(value).filter(Array.isArray) : value;
  return [expectElement(type, { title: toRaw(value)["title"], siteLinks })];
}

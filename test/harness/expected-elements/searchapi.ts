import type { ResultType } from "../../../shared/results.ts";
import {
  type ExpectedElement,
  type ExpectedPage,
  expectElement,
  type Raw,
  toRaw,
  toRows,
} from "./expected-elements.ts";

const groups: Readonly<Record<string, ResultType>> = {
  top_stories: "top_stories",
  local_results: "local_pack",
  related_questions: "people_also_ask",
  inline_images: "images",
  inline_videos: "video",
  related_searches: "related_searches",
};

/** The elements expected from an answer of SearchApi; undefined if it is not a page. */
export function expectFromSearchapi(answer: Raw): ExpectedPage | undefined {
  const { organic_results, ads, ai_overview, answer_box, knowledge_graph } = answer;
  if (!Array.isArray(organic_results)) return undefined;
  return {
    elements: [
      ...toRows(organic_results).map(expectOrganic),
      ...toRows(ads).map(expectAd),
      ...(ai_overview === undefined ? [] : [expectOverview(toRaw(ai_overview))]),
      ...(answer_box === undefined ? [] : [expectAnswerBox(toRaw(answer_box))]),
      ...(knowledge_graph === undefined ? [] : [expectPanel(toRaw(knowledge_graph))]),
      ...Object.entries(groups).flatMap(([name, type]) =>
        answer[name] === undefined ? [] : [expectElement(type, { siteLinks: linksOf(answer[name]) })],
      ),
    ],
    hasTotal: Number(toRaw(answer["search_information"])["total_results"] ?? 0) > organic_results.length,
  };
}

/** A list, or a list in an object. Of a question, the page of its answer. */
const linksOf = (value: unknown): unknown => toRaw(value)["images"] ?? value;

function expectAd({ title, link, displayed_link, snippet, sitelinks }: Raw): ExpectedElement {
  const siteLinks = sitelinks;
  return expectElement("paid", { title, url: link, breadcrumb: displayed_link, description: snippet, siteLinks });
}

function expectOrganic(row: Raw): ExpectedElement {
  const { extensions, detected_extensions } = toRaw(row["rich_snippet"]);
  const { rating, reviews } = toRaw(detected_extensions);
  const { channel, length } = toRaw(row["video"]);
  const lines = Array.isArray(extensions) ? extensions : [];
  return expectElement("organic", {
    title: row["title"],
    url: row["link"],
    breadcrumb: row["displayed_link"],
    description: row["snippet"],
    "richSnippet.top": [row["date"], rating, reviews, channel, length],
    // The rating among these lines is displayed above the snippet.
    "richSnippet.bottom": lines.filter((words) => !/^(\d\.\d|\(\d+\))$/.test(String(words))),
    siteLinks: row["sitelinks"],
  });
}

function expectOverview({ text_blocks, reference_links }: Raw): ExpectedElement {
  const texts = toRows(text_blocks).flatMap(({ answer, items }) => [
    answer,
    toRows(items).map((item) => item["answer"]),
  ]);
  return expectElement("ai_overview", { description: texts, siteLinks: reference_links });
}

function expectAnswerBox({ answer, snippet, date, organic_result }: Raw): ExpectedElement {
  const { title, link, displayed_link } = toRaw(organic_result);
  return expectElement("featured_snippet", {
    title,
    url: link,
    breadcrumb: displayed_link,
    description: snippet,
    "richSnippet.top": [answer, date],
  });
}

function expectPanel({ title, type, description, website, source, profiles }: Raw): ExpectedElement {
  return expectElement("knowledge_graph", {
    title,
    description,
    "richSnippet.top": type,
    siteLinks: [website, toRaw(source)["link"], profiles],
  });
}

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
  topStories: "top_stories",
  places: "local_pack",
  peopleAlsoAsk: "people_also_ask",
  images: "images",
  videos: "video",
  shopping: "shopping",
  discussions: "discussions",
  relatedSearches: "related_searches",
};

const notOnThePage = new Set(["searchParameters", "searchInformation", "credits"]);

/** What an answer of Serper holds; undefined where it is no page. */
export function expectFromSerper(answer: Raw): ExpectedPage | undefined {
  const { organic, ads, answerBox, knowledgeGraph, ...rest } = answer;
  const others = Object.entries(rest).filter(([name]) => !notOnThePage.has(name));
  if (!Array.isArray(organic)) return undefined;
  return {
    elements: [
      ...toRows(ads).map(({ title, link, snippet }) =>
        expectElement("paid", { title, url: link, description: snippet }),
      ),
      ...(hasText(answerBox) ? [boxOf(toRaw(answerBox))] : []),
      ...(hasText(knowledgeGraph) ? [panelOf(toRaw(knowledgeGraph))] : []),
      ...toRows(organic).map(organicOf),
      ...others.flatMap(([name, value]) => otherOf(groups[name] ?? "other", value)),
    ],
    hasTotal: false,
  };
}

function organicOf({ title, link, snippet, date, price, rating, attributes, sitelinks }: Raw): ExpectedElement {
  return expectElement("organic", {
    title,
    url: link,
    description: snippet,
    "richSnippet.top": [date, price, rating],
    "richSnippet.bottom": attributes,
    siteLinks: sitelinks,
  });
}

function boxOf({ title, link, snippet, answer }: Raw): ExpectedElement {
  const type = hasText(link) ? "featured_snippet" : "answer_box";
  return expectElement(type, { title, url: link, description: [snippet, answer] });
}

function panelOf({ title, type, description, attributes, website, descriptionLink }: Raw): ExpectedElement {
  return expectElement("knowledge_graph", {
    title,
    description,
    "richSnippet.top": type,
    "richSnippet.bottom": attributes,
    siteLinks: [website, descriptionLink],
  });
}

/** A number, as of how long it took, is no element. */
function otherOf(type: ResultType, value: unknown): ExpectedElement[] {
  if (typeof value !== "object" || !hasText(value)) return [];
  const siteLinks = isRaw(value) ? Object.values(value).filter(Array.isArray) : value;
  return [expectElement(type, { title: toRaw(value)["title"], siteLinks })];
}

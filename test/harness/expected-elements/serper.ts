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

const otherFields = new Set(["searchParameters", "searchInformation", "credits"]);

/** The elements expected from an answer of Serper; undefined if it is not a page. */
export function expectFromSerper(answer: Raw): ExpectedPage | undefined {
  const { organic, ads, answerBox, knowledgeGraph, ...rest } = answer;
  const others = Object.entries(rest).filter(([name]) => !otherFields.has(name));
  if (!Array.isArray(organic)) return undefined;
  const { didYouMean } = toRaw(answer["searchInformation"]);
  return {
    elements: [
      ...(hasText(didYouMean) ? [expectElement("other", { title: "didYouMean", siteLinks: didYouMean })] : []),
      ...toRows(ads).map(({ title, link, snippet }) =>
        expectElement("paid", { title, url: link, description: snippet }),
      ),
      ...(hasText(answerBox) ? [expectAnswerBox(toRaw(answerBox))] : []),
      ...(hasText(knowledgeGraph) ? [expectPanel(toRaw(knowledgeGraph))] : []),
      ...toRows(organic).map(expectOrganic),
      ...others.flatMap(([name, value]) => expectOther(groups[name] ?? "other", value)),
    ],
    hasTotal: false,
  };
}

function expectOrganic({ title, link, snippet, date, price, rating, attributes, sitelinks }: Raw): ExpectedElement {
  return expectElement("organic", {
    title,
    url: link,
    description: snippet,
    "richSnippet.top": [date, price, rating],
    "richSnippet.bottom": attributes,
    siteLinks: sitelinks,
  });
}

function expectAnswerBox({ title, link, snippet, answer }: Raw): ExpectedElement {
  const type = hasText(link) ? "featured_snippet" : "answer_box";
  return expectElement(type, { title, url: link, description: [snippet, answer] });
}

function expectPanel({ title, type, description, attributes, website, descriptionLink }: Raw): ExpectedElement {
  return expectElement("knowledge_graph", {
    title,
    description,
    "richSnippet.top": type,
    "richSnippet.bottom": attributes,
    siteLinks: [website, descriptionLink],
  });
}

/** A number, such as the time taken, is not an element. */
function expectOther(type: ResultType, value: unknown): ExpectedElement[] {
  if (typeof value !== "object" || !hasText(value)) return [];
  const siteLinks = isRaw(value) ? Object.values(value).filter(Array.isArray) : value;
  return [expectElement(type, { title: toRaw(value)["title"], siteLinks })];
}

import type { ResultType } from "../../../shared/results.ts";
import { type Held, type HeldPage, holding, isRaw, isSomething, type Raw, rawOf, rowsOf } from "./expected-elements.ts";

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
export function heldBySerper(answer: Raw): HeldPage | undefined {
  const { organic, ads, answerBox, knowledgeGraph, ...rest } = answer;
  const others = Object.entries(rest).filter(([name]) => !notOnThePage.has(name));
  if (!Array.isArray(organic)) return undefined;
  return {
    elements: [
      ...rowsOf(ads).map(({ title, link, snippet }) => holding("paid", { title, url: link, description: snippet })),
      ...(isSomething(answerBox) ? [boxOf(rawOf(answerBox))] : []),
      ...(isSomething(knowledgeGraph) ? [panelOf(rawOf(knowledgeGraph))] : []),
      ...rowsOf(organic).map(organicOf),
      ...others.flatMap(([name, value]) => otherOf(groups[name] ?? "other", value)),
    ],
    hasTotal: false,
  };
}

function organicOf({ title, link, snippet, date, price, rating, attributes, sitelinks }: Raw): Held {
  return holding("organic", {
    title,
    url: link,
    description: snippet,
    "richSnippet.top": [date, price, rating],
    "richSnippet.bottom": attributes,
    siteLinks: sitelinks,
  });
}

function boxOf({ title, link, snippet, answer }: Raw): Held {
  const type = isSomething(link) ? "featured_snippet" : "answer_box";
  return holding(type, { title, url: link, description: [snippet, answer] });
}

function panelOf({ title, type, description, attributes, website, descriptionLink }: Raw): Held {
  return holding("knowledge_graph", {
    title,
    description,
    "richSnippet.top": type,
    "richSnippet.bottom": attributes,
    siteLinks: [website, descriptionLink],
  });
}

/** A number, as of how long it took, is no element. */
function otherOf(type: ResultType, value: unknown): Held[] {
  if (typeof value !== "object" || !isSomething(value)) return [];
  const siteLinks = isRaw(value) ? Object.values(value).filter(Array.isArray) : value;
  return [holding(type, { title: rawOf(value)["title"], siteLinks })];
}

import type { ResultType } from "../../../shared/results.ts";
import {
  type ExpectedElement,
  type ExpectedPage,
  expectElement,
  hasText,
  type Raw,
  toRows,
} from "./expected-elements.ts";

const types: Readonly<Record<string, ResultType>> = {
  "default.html": "organic",
  "videos.html": "video",
  "images.html": "images",
  "products.html": "shopping",
  "map.html": "local_pack",
};

/** The elements expected from Google's part of an answer of SearXNG; undefined if it is not a page. */
export function expectFromSearxng(answer: Raw): ExpectedPage | undefined {
  const { results, answers, infoboxes, suggestions, corrections } = answer;
  if (!Array.isArray(results)) return undefined;
  return {
    elements: [
      ...(hasText(corrections) ? [expectElement("other", { siteLinks: corrections })] : []),
      ...toRows(answers).filter(isFromGoogle).map(expectAnswer),
      ...toRows(infoboxes).filter(isFromGoogle).map(expectPanel),
      ...toRows(results)
        .filter(isFromGoogle)
        .toSorted((one, other) => positionOf(one) - positionOf(other))
        .map(expectResult),
      ...(hasText(suggestions) ? [expectElement("related_searches", { siteLinks: suggestions })] : []),
    ],
    hasTotal: false,
  };
}

const isFromGoogle = ({ engine }: Raw) => engine === "google" || engine === "google cse";

/** Where Google had it: SearXNG sorts by a score of its own. Rows without a position keep their order behind the others. */
function positionOf({ positions }: Raw): number {
  return Math.min(1_000, ...(Array.isArray(positions) ? positions.map(Number) : []));
}

/** Google's date is at the beginning of the text, followed by a dash or dots. */
function expectResult(row: Raw): ExpectedElement {
  const date = /^.{0,12}\d.{0,12} (?:[—·…]|\.\.\.) /.exec(String(row["content"]))?.[0];
  return expectElement(types[String(row["template"])] ?? "other", {
    title: row["title"],
    url: row["url"],
    description: row["content"],
    "richSnippet.top": [date, row["publishedDate"], row["pubdate"], row["price"]],
    "richSnippet.bottom": [row["author"], row["length"], row["views"], row["metadata"]],
  });
}

function expectAnswer({ answer, translations, url }: Raw): ExpectedElement {
  const hasAnswer = hasText([answer, translations]);
  const type = hasText(url) ? "featured_snippet" : "answer_box";
  return expectElement(hasAnswer ? type : "other", { url, description: [answer, translations] });
}

function expectPanel({ infobox, content, attributes, urls, relatedTopics }: Raw): ExpectedElement {
  return expectElement("knowledge_graph", {
    title: infobox,
    description: content,
    "richSnippet.bottom": toRows(attributes).map(({ value }) => value),
    siteLinks: [urls, relatedTopics],
  });
}

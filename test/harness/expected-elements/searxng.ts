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

/** What an answer of SearXNG holds of Google's; undefined where it is no page. */
export function expectFromSearxng(answer: Raw): ExpectedPage | undefined {
  const { results, answers, infoboxes, suggestions, corrections } = answer;
  if (!Array.isArray(results)) return undefined;
  return {
    elements: [
      ...(hasText(corrections) ? [expectElement("other", { siteLinks: corrections })] : []),
      ...toRows(answers).filter(isGoogles).map(answerOf),
      ...toRows(infoboxes).filter(isGoogles).map(panelOf),
      ...toRows(results).filter(isGoogles).map(resultOf),
      ...(hasText(suggestions) ? [expectElement("related_searches", { siteLinks: suggestions })] : []),
    ],
    hasTotal: false,
  };
}

const isGoogles = ({ engine }: Raw) => engine === "google";

/** Google's date stands at the very beginning of the text, with a dash behind it. */
function resultOf(row: Raw): ExpectedElement {
  const date = /^.{0,12}\d.{0,12} — /.exec(String(row["content"]))?.[0];
  return expectElement(types[String(row["template"])] ?? "other", {
    title: row["title"],
    url: row["url"],
    description: row["content"],
    "richSnippet.top": [date, row["publishedDate"], row["price"]],
    "richSnippet.bottom": [row["author"], row["length"], row["views"], row["metadata"]],
  });
}

function answerOf({ answer, translations, url }: Raw): ExpectedElement {
  const isSaid = hasText([answer, translations]);
  const type = hasText(url) ? "featured_snippet" : "answer_box";
  return expectElement(isSaid ? type : "other", { url, description: [answer, translations] });
}

function panelOf({ infobox, content, attributes, urls, relatedTopics }: Raw): ExpectedElement {
  return expectElement("knowledge_graph", {
    title: infobox,
    description: content,
    "richSnippet.bottom": toRows(attributes).map(({ value }) => value),
    siteLinks: [urls, relatedTopics],
  });
}

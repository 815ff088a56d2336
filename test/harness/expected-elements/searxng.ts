import type { ResultType } from "../../../shared/results.ts";
import { type Held, type HeldPage, holding, isSomething, type Raw, rowsOf } from "./expected-elements.ts";

const types: Readonly<Record<string, ResultType>> = {
  "default.html": "organic",
  "videos.html": "video",
  "images.html": "images",
  "products.html": "shopping",
  "map.html": "local_pack",
};

/** What an answer of SearXNG holds of Google's; undefined where it is no page. */
export function heldBySearxng(answer: Raw): HeldPage | undefined {
  const { results, answers, infoboxes, suggestions, corrections } = answer;
  if (!Array.isArray(results)) return undefined;
  return {
    elements: [
      ...(isSomething(corrections) ? [holding("other", { siteLinks: corrections })] : []),
      ...rowsOf(answers).filter(isGoogles).map(answerOf),
      ...rowsOf(infoboxes).filter(isGoogles).map(panelOf),
      ...rowsOf(results).filter(isGoogles).map(resultOf),
      ...(isSomething(suggestions) ? [holding("related_searches", { siteLinks: suggestions })] : []),
    ],
    hasTotal: false,
  };
}

const isGoogles = ({ engine }: Raw) => engine === "google";

/** Google's date stands at the very beginning of the text, with a dash behind it. */
function resultOf(row: Raw): Held {
  const date = /^.{0,12}\d.{0,12} — /.exec(String(row["content"]))?.[0];
  return holding(types[String(row["template"])] ?? "other", {
    title: row["title"],
    url: row["url"],
    description: row["content"],
    "richSnippet.top": [date, row["publishedDate"], row["price"]],
    "richSnippet.bottom": [row["author"], row["length"], row["views"], row["metadata"]],
  });
}

function answerOf({ answer, translations, url }: Raw): Held {
  const isSaid = isSomething([answer, translations]);
  const type = isSomething(url) ? "featured_snippet" : "answer_box";
  return holding(isSaid ? type : "other", { url, description: [answer, translations] });
}

function panelOf({ infobox, content, attributes, urls, relatedTopics }: Raw): Held {
  return holding("knowledge_graph", {
    title: infobox,
    description: content,
    "richSnippet.bottom": rowsOf(attributes).map(({ value }) => value),
    siteLinks: [urls, relatedTopics],
  });
}

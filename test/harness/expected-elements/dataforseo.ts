import { type Held, type HeldPage, holding, type Raw, rawOf, rowsOf } from "./expected-elements.ts";

/** What an answer of DataForSEO holds; undefined where it is no page. Its items are the page, one by one. */
export function heldByDataForSeo(answer: Raw): HeldPage | undefined {
  const [task] = rowsOf(answer["tasks"]);
  const [result] = rowsOf(task?.["result"]);
  if (result === undefined || !Array.isArray(result["items"])) return undefined;
  const items = rowsOf(result["items"]);
  // The businesses of a pack are an item each, and one element.
  const first = items.filter(({ type }, at) => type !== "local_pack" || items[at - 1]?.["type"] !== "local_pack");
  return { elements: first.map(heldOf), hasTotal: Number(result["se_results_count"]) > 0 };
}

function heldOf(item: Raw): Held {
  const { type, title, url, items, links } = item;
  switch (type) {
    case "local_pack":
      return holding(undefined, { siteLinks: title });
    case "currency_box":
      return holding(undefined, { title: item["value"], description: item["converted_value"] });
    case "math_solver":
      return holding(undefined, {
        title,
        description: item["result"],
        "richSnippet.bottom": items,
        siteLinks: links,
      });
    case "ai_overview":
      return holding(undefined, { description: items, siteLinks: item["references"] });
    case "knowledge_graph":
      // A panel is no link; its site is among its links.
      return holding(undefined, {
        title,
        description: item["description"],
        "richSnippet.top": item["subtitle"],
        siteLinks: [url, items],
      });
    default:
      return anyOf(item);
  }
}

function anyOf(item: Raw): Held {
  const { title, featured_title, url, breadcrumb, description, snippet, text, rating, price } = item;
  const { current, displayed_price } = rawOf(price);
  const { subtitle, source, pre_snippet, timestamp } = item;
  const { extended_snippet, description_rows, table, faq } = item;
  return holding(undefined, {
    title: [title, featured_title],
    url,
    breadcrumb,
    description: [description, snippet, text],
    "richSnippet.top": [rawOf(rating)["value"], current, displayed_price, subtitle, source, pre_snippet, timestamp],
    "richSnippet.bottom": [extended_snippet, description_rows, rawOf(table)["table_content"], faq],
    siteLinks: [item["items"], item["links"], item["references"], item["related_result"]],
  });
}

import {
  type ExpectedElement,
  type ExpectedPage,
  expectElement,
  type Raw,
  toRaw,
  toRows,
} from "./expected-elements.ts";

/** The elements expected from an answer of DataForSEO, one per item; undefined if it is not a page. */
export function expectFromDataForSeo(answer: Raw): ExpectedPage | undefined {
  const [task] = toRows(answer["tasks"]);
  const [result] = toRows(task?.["result"]);
  if (result === undefined || !Array.isArray(result["items"])) return undefined;
  // Posts have an id and nothing that a page shows.
  const shown = toRows(result["items"]).filter(({ type }) => type !== "google_posts");
  const items = ["left", "right"].flatMap((column) =>
    shown.filter(({ position }) => (position === "right" ? "right" : "left") === column),
  );
  // Each business of a local pack is an item, but the pack is one element.
  const firstItems = items.filter(({ type }, at) => type !== "local_pack" || items[at - 1]?.["type"] !== "local_pack");
  return { elements: firstItems.map(expectItem), hasTotal: Number(result["se_results_count"]) > 0 };
}

function expectItem(item: Raw): ExpectedElement {
  const { type, title, url, items, links } = item;
  switch (type) {
    case "local_pack":
      return expectElement(undefined, { siteLinks: title });
    case "currency_box":
      return expectElement(undefined, { title: item["value"], description: item["converted_value"] });
    case "math_solver":
      return expectElement(undefined, {
        title,
        description: item["result"],
        "richSnippet.bottom": items,
        siteLinks: links,
      });
    case "ai_overview":
      return expectElement(undefined, { description: items, siteLinks: item["references"] });
    case "knowledge_graph":
      // A knowledge panel has no URL of its own: its site is among its links.
      return expectElement(undefined, {
        title,
        description: item["description"],
        "richSnippet.top": item["subtitle"],
        siteLinks: [url, items],
      });
    default:
      return expectCommonFields(item);
  }
}

function expectCommonFields(item: Raw): ExpectedElement {
  const { title, featured_title, url, breadcrumb, description, snippet, text, rating, price } = item;
  const { current, displayed_price } = toRaw(price);
  const { subtitle, source, pre_snippet, timestamp } = item;
  const { extended_snippet, description_rows, table, faq } = item;
  return expectElement(undefined, {
    title: [title, featured_title],
    url,
    breadcrumb,
    description: [description, snippet, text],
    "richSnippet.top": [toRaw(rating)["value"], current, displayed_price, subtitle, source, pre_snippet, timestamp],
    "richSnippet.bottom": [extended_snippet, description_rows, toRaw(table)["table_content"], faq],
    siteLinks: [item["items"], item["links"], item["references"], item["related_result"]],
  });
}

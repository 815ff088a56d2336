import type { Omission } from "./omissions.ts";

/** What the adapters of SerpApi and of SearchApi leave out alike: their answers have almost the same format. */
export const scraperOmissions: readonly Omission[] = [
  { path: "search_metadata", reason: "about the request" },
  { path: "search_parameters", reason: "repeats the request" },
  { path: "search_information", reason: "about the request; the total is read from it" },
  { path: "pagination", reason: "links to further pages" },
  { path: "error", reason: "reports that there are no results" },
  { path: "**.position", reason: "position in its list, shown by the order" },
  { path: "**.thumbnail*", reason: "an image URL" },
  { path: "**.favicon", reason: "an image URL" },
  { path: "**.detected_extensions", reason: "numbers from the adjacent texts; the rating is read from them" },
  { path: "**.snippet_highlighted_words", reason: "words of the snippet" },
  { path: "**.*_id", reason: "Google's id" },
  { path: "**.kgmid", reason: "Google's id" },
  { path: "**.reference_indexes", reason: "numbers of references" },
  { path: "**.text_blocks.type", reason: "the paragraph type" },
  { path: "answer_box.type", reason: "the answer type; used as the title if there is none" },
  { path: "ai_overview.error", reason: "reports that there is no overview" },
  { path: "organic_results.source", reason: "the site's name, also in its breadcrumb and domain; kept with an author" },
  { path: "**.tracking_link", reason: "a Google redirect to the adjacent link" },
  { path: "**.cached_page_link", reason: "a Google page about the result, not displayed" },
];

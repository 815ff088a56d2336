import type { Omission } from "./omissions.ts";
import { scraperOmissions } from "./scrapers.ts";

/** What the adapter of SearchApi leaves out. */
export const searchapiOmissions: readonly Omission[] = [
  ...scraperOmissions,
  { path: "**.block_position", reason: "top or bottom, shown by the order" },
  { path: "**.domain", reason: "the host of the adjacent link" },
  { path: "inline_images.images.original", reason: "an image URL" },
  { path: "**.*_token", reason: "a key for another call to SearchApi" },
  { path: "**.reference_links.index", reason: "numbers of references" },
  { path: "**.text_blocks.items.type", reason: "the paragraph type" },
  { path: "**.markdown", reason: "the adjacent text in another form" },
  { path: "answer_box.link", reason: "a Google page; used if the box quotes no page" },
  { path: "answer_box.organic_result.source", reason: "the site's name, also in its breadcrumb and domain" },
  { path: "knowledge_graph.knowledge_graph_type", reason: "Google's name of the panel type" },
  { path: "organic_results.video.source", reason: "the site's name" },
  { path: "ads.source", reason: "the site's name, also in its breadcrumb and domain" },
  { path: "related_questions.answer_highlight", reason: "words of the answer; used if there is none" },
  { path: "related_questions.entity", reason: "the answer in another form" },
  { path: "related_questions.search", reason: "a Google page with more of the same" },
  {
    path: "related_questions.reference_links",
    reason: "pages that a generated answer cites; the first is used if the question has no page",
  },
  { path: "related_questions.error", reason: "reports that Google loads the answer later" },
];

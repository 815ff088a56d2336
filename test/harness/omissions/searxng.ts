import type { Omission } from "./omissions.ts";

/** What the adapter of SearXNG leaves out. */
export const searxngOmissions: readonly Omission[] = [
  { path: "query", reason: "repeats the request" },
  { path: "number_of_results", reason: "an estimate by the instance, not by Google" },
  { path: "unresponsive_engines", reason: "about the request; a failed engine is a failure" },
  { path: "answers", reason: "of the instance, not of Google" },
  { path: "infoboxes", reason: "of the instance, not of Google" },
  { path: "corrections", reason: "of the instance, not of Google" },
  { path: "**.engine", reason: "always Google" },
  { path: "**.engines", reason: "always Google" },
  { path: "**.template", reason: "internal to SearXNG" },
  { path: "**.category", reason: "internal to SearXNG" },
  { path: "**.score", reason: "internal to SearXNG" },
  { path: "**.positions", reason: "position on the page, shown by the order" },
  { path: "**.parsed_url", reason: "the parts of the URL" },
  { path: "**.priority", reason: "internal to SearXNG" },
  { path: "**.publishedDate", reason: "a copy of the date before the text; used if there is none" },
  { path: "**.img_src", reason: "an image URL" },
  { path: "**.thumbnail*", reason: "an image URL" },
];

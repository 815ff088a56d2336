import type { Omission } from "./omissions.ts";

/** What the adapter of SearXNG leaves out. */
export const searxngOmissions: readonly Omission[] = [
  { path: "query", reason: "repeats the request" },
  { path: "number_of_results", reason: "an estimate of the instance and not of Google" },
  { path: "unresponsive_engines", reason: "about the request; a failed engine is a failure" },
  { path: "**.engine", reason: "is always Google's" },
  { path: "**.engines", reason: "is always Google's" },
  { path: "**.template", reason: "the kind of row, which becomes its type" },
  { path: "**.category", reason: "SearXNG's own" },
  { path: "**.score", reason: "SearXNG's own" },
  { path: "**.positions", reason: "the place within the page, which the order tells" },
  { path: "**.parsed_url", reason: "the parts of the URL" },
  { path: "**.priority", reason: "SearXNG's own" },
  { path: "**.pubdate", reason: "the date beside it once more" },
  { path: "**.img_src", reason: "a picture's address" },
  { path: "**.thumbnail*", reason: "a picture's address" },
];

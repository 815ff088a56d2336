import type { Omission } from "./omissions.ts";

/** What the adapter of Serper leaves out. */
export const serperOmissions: readonly Omission[] = [
  { path: "searchParameters", reason: "repeats the request" },
  { path: "credits", reason: "the cost, which is logged but not part of the page" },
  { path: "took", reason: "about the request" },
  { path: "**.position", reason: "position in its list, shown by the order" },
  { path: "**.*Url", reason: "an image URL" },
  { path: "**.*Width", reason: "an image size" },
  { path: "**.*Height", reason: "an image size" },
  { path: "**.domain", reason: "the host of the URL" },
  { path: "**.cid", reason: "Google's id" },
  { path: "**.fid", reason: "Google's id" },
  { path: "**.*Id", reason: "Google's id" },
  { path: "**.latitude", reason: "coordinates are not displayed" },
  { path: "**.longitude", reason: "coordinates are not displayed" },
  { path: "**.snippetHighlighted", reason: "words of the snippet" },
  { path: "**.bookingLinks", reason: "further addresses of a business" },
];

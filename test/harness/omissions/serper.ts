import type { Omission } from "./omissions.ts";

/** What the adapter of Serper leaves out. */
export const serperOmissions: readonly Omission[] = [
  { path: "searchParameters", reason: "repeats the request" },
  { path: "credits", reason: "the cost, which is logged and not part of the page" },
  { path: "took", reason: "about the request" },
  { path: "**.position", reason: "the place within its list, which the order tells" },
  { path: "**.*Url", reason: "a picture's address" },
  { path: "**.*Width", reason: "a picture's size" },
  { path: "**.*Height", reason: "a picture's size" },
  { path: "**.domain", reason: "the host of the URL" },
  { path: "**.cid", reason: "Google's id" },
  { path: "**.fid", reason: "Google's id" },
  { path: "**.*Id", reason: "Google's id" },
  { path: "**.latitude", reason: "coordinates are not displayed" },
  { path: "**.longitude", reason: "coordinates are not displayed" },
  { path: "**.snippetHighlighted", reason: "words of the snippet" },
  { path: "**.bookingLinks", reason: "further addresses of a business" },
];

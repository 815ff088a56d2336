import { z } from "zod";

/** The kinds of element on a results page. Whatever is new upstream becomes `other`: kept, never dropped. */
export const resultTypes = [
  "organic",
  "paid",
  "featured_snippet",
  "answer_box",
  "ai_overview",
  "knowledge_graph",
  "people_also_ask",
  "local_pack",
  "top_stories",
  "video",
  "images",
  "shopping",
  "discussions",
  "related_searches",
  "other",
] as const;

export const siteLink = z.strictObject({
  title: z.string(),
  url: z.string(),
  description: z.string(),
});

/** One element of the page. All nine keys are always there: a text the engine does not give is "", a list []. */
export const result = z.strictObject({
  type: z.enum(resultTypes),
  rank: z.int().min(1),
  title: z.string(),
  url: z.string(),
  domain: z.string(),
  breadcrumb: z.string(),
  description: z.string(),
  richSnippet: z.strictObject({ top: z.array(z.string()), bottom: z.array(z.string()) }),
  siteLinks: z.array(siteLink),
});

export type ResultType = (typeof resultTypes)[number];
export type SiteLink = z.infer<typeof siteLink>;
export type Result = z.infer<typeof result>;

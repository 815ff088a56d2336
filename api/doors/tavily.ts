import { z } from "zod";
import {
  answersIn,
  countUpTo,
  type Door,
  domainList,
  isoDate,
  localeOf,
  notGiven,
  notOnSites,
  onSites,
  optionalText,
  organicOf,
  publishedWithin,
  requiredKeyword,
  spanOf,
  withOperators,
} from "./door.ts";

/** Preferred domains leave the others in. Google has no operator for them. */
const prefersOnly = ({ include_domains_mode: mode }: { include_domains_mode?: unknown }) =>
  mode === "prefer" || mode === "boost";

/** Tavily: POST `/search`. Its clients show `detail.error`, and read `images` as a list. */
export const tavily: Door = {
  paths: { "/search": ["POST"] },
  sent: "body",
  fields: z
    .object({
      query: requiredKeyword,
      max_results: countUpTo(20, 5),
      country: optionalText,
      language: optionalText,
      include_domains: domainList,
      include_domains_mode: z.unknown().optional(),
      exclude_domains: domainList,
      time_range: spanOf("day", "week", "month", "year", "d", "w", "m", "y"),
      start_date: isoDate,
      end_date: isoDate,
      include_answer: z.unknown().optional(),
      include_raw_content: notGiven("contents of pages"),
    })
    .transform(({ query, max_results: part, country, language, include_answer: wantsAnswer, ...filters }, context) => ({
      search: {
        keyword: withOperators(context, query, {
          include_domains: onSites(prefersOnly(filters) ? [] : filters.include_domains),
          exclude_domains: notOnSites(filters.exclude_domains),
          time_range: publishedWithin([filters.time_range, filters.start_date], filters.end_date),
        }),
        depth: part.depth,
        ...localeOf(language),
        ...(country !== undefined && { location: country }),
      },
      write: (answer, { durationMs }) => ({
        query,
        // What Google itself answers, quoted, calculated or generated.
        answer: wantsAnswer ? (answersIn(answer)[0] ?? null) : null,
        follow_up_questions: null,
        images: [],
        results: part.of(organicOf(answer)).map(({ title, url, description }, place) => ({
          title,
          url,
          content: description,
          // From 1 downwards: clients sort by it, and leave out results below a threshold such as 0.5.
          score: (100 - place) / 100,
          raw_content: null,
        })),
        response_time: Math.round(durationMs) / 1_000,
        request_id: answer.requestId,
      }),
    })),
  names: { keyword: "query", depth: "max_results", location: "country" },
  statuses: { out_of_credits: 432, plan_required: 432 },
  writeError: ({ code, message, details }, requestId) => ({ detail: { error: message, code, details, requestId } }),
};

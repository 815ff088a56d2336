import { pino } from "pino";
import { type Attempt, openAttempt, newTrace } from "../../../../worker/providers/policies/attempt.ts";
import type { Element, Page } from "../../../../worker/providers/provider.ts";
import { query } from "../../../harness/fixtures/queries.ts";

export const silentLog = pino({ level: "silent" });

/** So long that no test reaches it. */
export const farMs = 60_000;

/** A page without results, unless `fields` has some. */
export function page(fields: Partial<Page> = {}): Page {
  return { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 0, ...fields };
}

/** A page with one organic result of this title. */
export function pageTitled(title: string, fields: Partial<Page> = {}): Page {
  const texts = {
    title,
    url: `https://${title}.example/`,
    domain: `${title}.example`,
    breadcrumb: "",
    description: "",
  };
  const element: Element = { type: "organic", ...texts, richSnippet: { top: [], bottom: [] }, siteLinks: [] };
  return page({ elements: [element], ...fields });
}

export function titlesOf(pages: readonly Page[]): string[] {
  return pages.flatMap(({ elements }) => elements.map(({ title }) => title));
}

export function attemptFor({ depth = 10, remainingMs = farMs } = {}): Attempt {
  return openAttempt({ query: query({ depth }), deadlineAtMs: performance.now() + remainingMs, trace: newTrace() });
}

/** A call that ends when the test says so. */
export function held<T>() {
  const { promise, resolve } = Promise.withResolvers<T>();
  let calls = 0;
  const call = () => {
    calls += 1;
    return promise;
  };
  return { call, end: resolve, calls: () => calls };
}

import { pino } from "pino";
import { vi } from "vitest";
import { openMetrics } from "../../../../shared/metrics.ts";
import { type Attempt, openAttempt, newTrace } from "../../../../worker/providers/policies/attempt.ts";
import type { ProviderHttp } from "../../../../worker/providers/policies/http.ts";
import { ProviderClient } from "../../../../worker/providers/policies/provider-client.ts";
import type {
  Element,
  Failure,
  FailureKind,
  Page,
  PageAnswer,
  Provider,
} from "../../../../worker/providers/provider.ts";
import { openSandbox } from "../../../../worker/providers/sandbox/sandbox.ts";
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

export type Sent = { pageNumber: number; timeoutMs: number; signal?: AbortSignal };
export type Reply = (sent: Sent) => Promise<PageAnswer | Failure> | PageAnswer | Failure;

/** The number of the page as the answer to each request. */
export const everyPage: Reply = ({ pageNumber }) => ({ status: 200, headers: {}, body: String(pageNumber) });
export const failing =
  (failure: FailureKind): Reply =>
  () => ({ failure });
/** Never answers: times out, as the HTTP policy does. */
export const hang: Reply = ({ timeoutMs, signal }) =>
  new Promise((resolve) => {
    const timeOut = () => resolve({ failure: "timeout" });
    setTimeout(timeOut, timeoutMs).unref();
    signal?.addEventListener("abort", timeOut);
  });

/** A provider with endless pages, with all its policies except HTTP. */
export function openClient(settings: Partial<Provider> = {}) {
  const requests: Sent[] = [];
  const stub: { reply: Reply; requests: Sent[] } = { reply: everyPage, requests };
  const http: ProviderHttp = {
    send: async (_, { url }, limits) => {
      const sent = { pageNumber: Number(url), ...limits };
      requests.push(sent);
      return stub.reply(sent);
    },
    close: async () => undefined,
  };
  const provider: Provider = {
    ...openSandbox(),
    request: (_, pageNumber) => ({ url: String(pageNumber), headers: {}, body: "" }),
    read: ({ body }) => pageTitled(`page-${body}`, { hasMore: true }),
    ...settings,
  };
  const metrics = openMetrics();
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push(JSON.parse(line)) });
  const client = new ProviderClient(provider, { http, metrics, log });
  const onFirstPage = vi.fn<() => void>();
  const run = async (attempt: ReturnType<typeof attemptFor>) => {
    const outcome = await client.fetchPages(attempt, onFirstPage);
    return { outcome: "failure" in outcome ? outcome : titlesOf(outcome), trace: attempt.trace };
  };
  const fetch = (options: Parameters<typeof attemptFor>[0] = {}) => run(attemptFor(options));
  const times = async (count: number, options: Parameters<typeof attemptFor>[0] = {}) => {
    for (let round = 0; round < count; round += 1) await fetch(options);
  };
  /** Takes what is left of the budget of retries and hedges. */
  const spendBudget = () => {
    let spent = 0;
    while (client.reserveHedge()) spent += 1;
    return spent;
  };
  const requested = () => requests.map(({ pageNumber }) => pageNumber);
  return { client, stub, run, fetch, times, spendBudget, requested, onFirstPage, metrics, lines };
}

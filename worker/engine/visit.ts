import { setTimeout as sleep } from "node:timers/promises";
import type { Query } from "../../shared/query.ts";
import type { Asker } from "./ask.ts";
import { type Failure, type FailureKind, failureKinds, type Page, type Provider } from "./provider.ts";

/** With less time than this left, in milliseconds, no further call is begun: it would be paid for, and come too late. */
export const roomMsMin = 50;
const retryPauseMs = 100;
const organicPerPage = 10;

/** What a search cost and whom it asked, for the log line and the metrics. `provider` is who answered, else who was asked last. */
export type Trace = {
  provider: string;
  /** `dropped` is a page that was not waited for, because another one of the same search had failed. */
  calls: { provider: string; outcome: "ok" | "dropped" | FailureKind; ms: number }[];
  costMicroUsd: number;
};

/** One search at one provider. Calls and cost are added to the trace, also of a visit that fails in the end. */
export type Visit = {
  provider: Provider;
  asker: Asker;
  query: Query;
  deadlineAt: number;
  trace: Trace;
};

/**
 * All pages that the depth of the query needs, or the failure of one of them: half an answer is not what was ordered. The
 * first page tells whether there are more, then the rest are fetched side by side; when one fails, the others are dropped.
 */
export async function fetchPages(visit: Visit): Promise<Page[] | Failure> {
  const stop = new AbortController();
  const first = await fetchPage(visit, 1, stop.signal);
  if ("failure" in first) return first;
  const pagesWanted = Math.ceil(visit.query.depth / organicPerPage);
  if (pagesWanted === 1 || !first.hasMore) return [first];
  const pages: Page[] = [first];
  let failure: Failure | undefined;
  const fetchInto = async (index: number) => {
    const page = await fetchPage(visit, index + 1, stop.signal);
    if (!("failure" in page)) {
      pages[index] = page;
      return;
    }
    failure ??= page;
    stop.abort();
  };
  await Promise.all(Array.from({ length: pagesWanted - 1 }, (_, offset) => fetchInto(offset + 1)));
  return failure ?? pages;
}

/** One page, with one more try after a failure that may pass. */
async function fetchPage(visit: Visit, pageNumber: number, stop: AbortSignal): Promise<Page | Failure> {
  const page = await callOnce(visit, pageNumber, stop);
  if (!("failure" in page) || !failureKinds[page.failure].retry || stop.aborted) return page;
  const roomMs = visit.deadlineAt - performance.now() - retryPauseMs;
  if (roomMs < roomMsMin) return page;
  await sleep(retryPauseMs);
  return stop.aborted ? page : callOnce(visit, pageNumber, stop);
}

async function callOnce(visit: Visit, pageNumber: number, stop: AbortSignal): Promise<Page | Failure> {
  const { provider, trace } = visit;
  const startedAt = performance.now();
  const page = await ask(visit, pageNumber, stop);
  const failure = "failure" in page && (stop.aborted ? "dropped" : page.failure);
  trace.calls.push({
    provider: provider.name,
    outcome: failure || "ok",
    ms: Math.round(performance.now() - startedAt),
  });
  trace.costMicroUsd += page.costMicroUsd ?? 0;
  return page;
}

/** An adapter that throws has met something that nobody thought of; to the caller that is an answer that cannot be read. */
async function ask(
  { provider, asker, query, deadlineAt }: Visit,
  pageNumber: number,
  stop: AbortSignal,
): Promise<Page | Failure> {
  const msMax = Math.min(provider.attemptMsMax, deadlineAt - performance.now());
  if (msMax <= 0) return { failure: "timeout" };
  try {
    const answer = await asker.ask(provider, provider.request(query, pageNumber), { msMax, stop });
    return "failure" in answer ? answer : provider.read(answer);
  } catch {
    return { failure: "unreadable" };
  }
}

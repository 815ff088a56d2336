import { setTimeout as sleep } from "node:timers/promises";
import type { Query } from "../../query/query.ts";
import type { ProviderHttp } from "./http.ts";
import type { ProviderPolicy, PageOutcome } from "./provider-policy.ts";
import { type Failure, type FailureKind, failureKinds, type Page } from "../provider.ts";

/** With less time than this left, in milliseconds, no further call is begun: it would be paid for, and come too late. */
export const minAttemptMs = 50;
const retryPauseMs = 100;
const organicPerPage = 10;

/** What a search cost and whom it asked, for the log line and the metrics. `provider` is who answered, else who was asked last. */
export type Trace = {
  provider: string;
  calls: { provider: string; outcome: "ok" | FailureKind; ms: number; costMicroUsd: number }[];
  costMicroUsd: number;
};

/** One search at one provider. Calls and cost are added to the trace, also of a visit that fails in the end. */
export type ProviderAttempt = {
  line: ProviderPolicy;
  asker: ProviderHttp;
  query: Query;
  /** For the whole visit: places, calls, second calls. */
  deadlineAt: number;
  /** Aborted with the kind of failure that it then counts as. */
  stop: AbortController;
  /** Whether its first page has come. */
  isAnswering: boolean;
  trace: Trace;
};

/**
 * All pages that the depth of the query needs, or the failure of one of them: half an answer is not what was ordered. The
 * provider is judged by how this ends, since one failed page of ten, and those that are dropped for it, say little alone.
 * @param onAnswer called once the first page is there, unless the visit has been given up.
 */
export function fetchPages(visit: ProviderAttempt, onAnswer: () => void): Promise<Page[] | Failure> {
  return visit.line.withBreaker(async () => {
    const first = await fetchPage(visit, 1);
    if (visit.stop.signal.aborted) return reasonOf(visit);
    if ("failure" in first) return first;
    visit.isAnswering = true;
    onAnswer();
    return fetchOthers(visit, first);
  });
}

/** The first page tells whether there are more. They are fetched side by side; when one fails, the others are dropped. */
async function fetchOthers(visit: ProviderAttempt, first: Page): Promise<Page[] | Failure> {
  const pagesWanted = first.hasMore ? Math.ceil(visit.query.depth / organicPerPage) : 1;
  const pages: Page[] = [first];
  let failure: Failure | undefined;
  const fetchInto = async (index: number) => {
    const page = await fetchPage(visit, index + 1);
    if (!("failure" in page)) {
      pages[index] = page;
      return;
    }
    failure ??= page;
    cancelAttempt(visit, "dropped");
  };
  await Promise.all(Array.from({ length: pagesWanted - 1 }, (_, offset) => fetchInto(offset + 1)));
  return failure ?? pages;
}

/** Ends what a visit still waits for. */
export function cancelAttempt({ stop }: ProviderAttempt, kind: FailureKind): void {
  stop.abort({ failure: kind } satisfies Failure);
}

/** Only giveUp() aborts, and it tells the failure. */
const reasonOf = ({ stop }: ProviderAttempt) => stop.signal.reason as Failure;

/** One page, with one more try after a failure that may pass, as long as the provider has such tries left. */
async function fetchPage(visit: ProviderAttempt, pageNumber: number): Promise<PageOutcome> {
  const { line, stop, deadlineAt } = visit;
  line.retries.earn();
  const page = await callOnce(visit, pageNumber);
  if (!("failure" in page) || !failureKinds[page.failure].retry || stop.signal.aborted) return page;
  const roomMs = deadlineAt - performance.now() - retryPauseMs;
  if (roomMs < minAttemptMs) return { ...page, outOfTime: true };
  if (!line.retries.spend()) return page;
  await sleep(retryPauseMs, undefined, { signal: stop.signal }).catch(() => undefined);
  return stop.signal.aborted ? page : callOnce(visit, pageNumber);
}

function callOnce(visit: ProviderAttempt, pageNumber: number): Promise<PageOutcome> {
  const { line, trace, deadlineAt, stop } = visit;
  const call = async (): Promise<PageOutcome> => {
    const startedAt = performance.now();
    if (deadlineAt - startedAt < minAttemptMs) return { failure: "busy", outOfTime: true };
    const page = await ask(visit, pageNumber);
    trace.calls.push({
      provider: line.provider.name,
      outcome: "failure" in page ? page.failure : "ok",
      ms: Math.round(performance.now() - startedAt),
      costMicroUsd: page.costMicroUsd ?? 0,
    });
    trace.costMicroUsd += page.costMicroUsd ?? 0;
    return page;
  };
  return line.withBulkhead(call, { deadlineAt, stop: stop.signal });
}

/** An adapter that throws has met something that nobody thought of; to the caller that is an answer that cannot be read. */
async function ask(visit: ProviderAttempt, pageNumber: number): Promise<PageOutcome> {
  const { asker, query, deadlineAt, stop } = visit;
  const { provider } = visit.line;
  const leftMs = deadlineAt - performance.now();
  const outOfTime = leftMs < provider.callTimeoutMs;
  const limits = { msMax: Math.min(provider.callTimeoutMs, leftMs), stop: stop.signal };
  try {
    const answer = await asker.send(provider, provider.request(query, pageNumber), limits);
    if (stop.signal.aborted) return reasonOf(visit);
    if (!("failure" in answer)) return provider.read(answer);
    return answer.failure === "timeout" ? { ...answer, outOfTime } : answer;
  } catch {
    return { failure: "unreadable" };
  }
}

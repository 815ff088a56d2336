import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { openMetrics } from "../../../../shared/metrics.ts";
import { fetchWithFailover } from "../../../../worker/providers/policies/failover.ts";
import type { ProviderHttp } from "../../../../worker/providers/policies/http.ts";
import { ProviderClient } from "../../../../worker/providers/policies/provider-client.ts";
import { newTrace } from "../../../../worker/providers/policies/attempt.ts";
import type { Failure, PageAnswer, Provider } from "../../../../worker/providers/provider.ts";
import { openSandbox } from "../../../../worker/providers/sandbox/sandbox.ts";
import { eventually } from "../../../harness/assertions/eventually.ts";
import { query } from "../../../harness/fixtures/queries.ts";
import { farMs, pageTitled, silentLog } from "./fixtures.ts";

/** A search that no caller waits for sends no further call, and none of the calls that were sent is aborted. */

interface Call {
  provider: string;
  page: number;
  signal: AbortSignal | undefined;
  end: (outcome: PageAnswer | Failure) => void;
}

const defaults = { depth: 10, hedgeAfterMs: 0, concurrentCallsMax: 100, isDisconnected: false };
const answered: PageAnswer = { status: 200, headers: {}, body: "" };

/** A search over these providers, whose calls end when the test says so. */
function search(names: readonly string[], options: Partial<typeof defaults> = {}) {
  const { depth, hedgeAfterMs, concurrentCallsMax, isDisconnected } = { ...defaults, ...options };
  const calls: Call[] = [];
  const http: ProviderHttp = {
    send: ({ name }, { url }, { signal }) => {
      const { promise, resolve } = Promise.withResolvers<PageAnswer | Failure>();
      calls.push({ provider: name, page: Number(url), signal, end: resolve });
      return promise;
    },
    close: async () => undefined,
  };
  const providerNamed = (name: string): Provider => ({
    ...openSandbox(),
    name,
    concurrentCallsMax,
    request: (_, pageNumber) => ({ url: String(pageNumber), headers: {}, body: "" }),
    read: () => pageTitled("page", { hasMore: true }),
  });
  const metrics = openMetrics();
  const providers = names.map((name) => new ProviderClient(providerNamed(name), { http, metrics, log: silentLog }));
  const disconnection = new AbortController();
  if (isDisconnected) disconnection.abort();
  const ended = fetchWithFailover({
    providers,
    query: query({ depth }),
    deadlineAtMs: performance.now() + farMs,
    hedgeAfterMs,
    disconnected: disconnection.signal,
    trace: newTrace(),
  });
  const sent = async (count: number) => {
    await nextTurn(); // Calls that have a slot are sent within this turn, before any hedge is due.
    await eventually(async () => calls.length === count);
  };
  const call = (index: number): Call => {
    const found = calls[index];
    if (!found) throw new Error(`there are only ${calls.length} calls`);
    return found;
  };
  return { calls, call, sent, ended, disconnect: () => disconnection.abort() };
}

const pagesOf = (calls: readonly Call[]) => calls.map(({ page }) => page);
const aborted = (calls: readonly Call[]) => calls.filter(({ signal }) => signal?.aborted);

test("after the first page no further page is fetched", async () => {
  const { calls, call, sent, ended, disconnect } = search(["one", "two"], { depth: 100 });
  await sent(1);
  disconnect();
  expect(aborted(calls)).toEqual([]);
  call(0).end(answered);
  await nextTurn(); // A further page would be sent within this turn, and the search would wait for its answer.
  expect(pagesOf(calls)).toEqual([1]);
  expect(await ended).toMatchObject({ failures: [{ failure: "dropped", outOfTime: true }] });
});

test("an answer that needs no further page is an answer all the same", async () => {
  const { call, sent, ended, disconnect } = search(["one"]);
  await sent(1);
  disconnect();
  call(0).end(answered);
  expect(await ended).toMatchObject({ pages: [{}] });
});

test("pages that wait for a slot are not sent, and pages that were sent end normally, even if one fails", async () => {
  const { calls, call, sent, ended, disconnect } = search(["one"], { depth: 100, concurrentCallsMax: 3 });
  await sent(1);
  call(0).end(answered);
  await sent(4);
  disconnect();
  call(1).end({ failure: "blocked" });
  call(2).end(answered);
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  await sleep(20);
  expect({ hasEnded, aborted: aborted(calls) }).toEqual({ hasEnded: false, aborted: [] });
  call(3).end(answered);
  expect(await ended).toMatchObject({ failures: [{}] });
  expect(calls).toHaveLength(4);
});

test("a failure is neither retried nor taken to the next provider", async () => {
  const { calls, call, sent, ended, disconnect } = search(["one", "two"]);
  await sent(1);
  disconnect();
  call(0).end({ failure: "unavailable" });
  expect(await ended).toEqual({ failures: [{ failure: "unavailable" }], isCutShort: true });
  expect(calls).toHaveLength(1);
});

test("a pause before a retry ends without the retry", async () => {
  const { calls, call, sent, ended, disconnect } = search(["one"]);
  await sent(1);
  call(0).end({ failure: "unavailable" });
  await sleep(1);
  disconnect();
  expect(await ended).toMatchObject({ failures: [{ failure: "unavailable" }] });
  expect(calls).toHaveLength(1);
});

test("no hedge starts", async () => {
  const { calls, call, sent, ended, disconnect } = search(["one", "two"], { hedgeAfterMs: 10 });
  await sent(1);
  disconnect();
  await sleep(50);
  call(0).end(answered);
  expect(await ended).toMatchObject({ pages: [{}] });
  expect(calls).toHaveLength(1);
});

test("a hedge that was sent ends normally, although the other provider has answered", async () => {
  const { calls, call, sent, ended, disconnect } = search(["one", "two"], { hedgeAfterMs: 10 });
  await sent(2);
  disconnect();
  call(0).end(answered);
  await sleep(20);
  expect(aborted(calls)).toEqual([]);
  call(1).end(answered);
  expect(await ended).toMatchObject({ pages: [{}] });
});

test("a search that was disconnected before it began sends nothing", async () => {
  const { calls, ended } = search(["one"], { isDisconnected: true });
  expect(await ended).toMatchObject({ failures: [] });
  expect(calls).toEqual([]);
});

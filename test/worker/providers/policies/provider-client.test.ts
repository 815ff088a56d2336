import { describe, expect, test, vi } from "vitest";
import { pino } from "pino";
import type { ProviderHttp } from "../../../../worker/providers/policies/http.ts";
import { countUnreadableRows, ProviderClient } from "../../../../worker/providers/policies/provider-client.ts";
import { openMetrics } from "../../../../shared/metrics.ts";
import type { Failure, Page, PageAnswer, Provider } from "../../../../worker/providers/provider.ts";
import { openSandbox } from "../../../../worker/providers/sandbox/sandbox.ts";
import { eventually } from "../../../harness/assertions/eventually.ts";
import { attemptFor, farMs, page, pageTitled, silentLog, titlesOf } from "./fixtures.ts";

type Sent = { pageNumber: number; timeoutMs: number; signal: AbortSignal };
type Reply = (sent: Sent) => Promise<PageAnswer | Failure> | PageAnswer | Failure;

/** The number of the page as the answer to each request. */
const everyPage: Reply = ({ pageNumber }) => ({ status: 200, headers: {}, body: String(pageNumber) });
const failing =
  (failure: Failure["failure"]): Reply =>
  () => ({ failure });
/** Never answers: times out, as the HTTP policy does. */
const hang: Reply = ({ timeoutMs, signal }) =>
  new Promise((resolve) => {
    const timeOut = () => resolve({ failure: "timeout" });
    setTimeout(timeOut, timeoutMs).unref();
    signal.addEventListener("abort", timeOut);
  });

/** A provider with endless pages, with all its policies except HTTP. */
function openClient(settings: Partial<Provider> = {}) {
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
    request: (_, pageNumber) => ({ url: String(pageNumber), method: "GET", headers: {}, body: "" }),
    read: ({ body }) => pageTitled(`page-${body}`, { hasMore: true }),
    ...settings,
  };
  const metrics = openMetrics();
  const client = new ProviderClient(provider, { http, metrics, log: silentLog });
  const fetch = async ({ depth = 10, remainingMs = farMs } = {}) => {
    const attempt = attemptFor({ depth, remainingMs });
    const outcome: Page[] | Failure = await client.fetchPages(attempt, () => undefined);
    return { outcome: "failure" in outcome ? outcome : titlesOf(outcome), trace: attempt.trace };
  };
  const times = async (count: number, options: Parameters<typeof fetch>[0] = {}) => {
    for (let round = 0; round < count; round += 1) await fetch(options);
  };
  return { client, stub, fetch, times, metrics };
}

test("an attempt returns all pages of a query, and its trace has all calls", async () => {
  const { fetch } = openClient();
  const { outcome, trace } = await fetch({ depth: 30 });
  expect(outcome).toEqual(["page-1", "page-2", "page-3"]);
  expect(trace.calls.map((call) => call.outcome)).toEqual(["ok", "ok", "ok"]);
});

test("a failure that passes is retried, and both calls are in the trace", async () => {
  const { stub, fetch } = openClient();
  stub.reply = (sent) => (stub.requests.length === 1 ? { failure: "unavailable" } : everyPage(sent));
  const { outcome, trace } = await fetch();
  expect(outcome).toEqual(["page-1"]);
  expect(trace.calls.map((call) => call.outcome)).toEqual(["unavailable", "ok"]);
});

test("every page's unreadable rows are counted for the provider", async () => {
  const { fetch, metrics } = openClient({
    read: ({ body }) => pageTitled(`page-${body}`, { hasMore: true, unreadableRows: Number(body) }),
  });
  await fetch({ depth: 30 });
  expect((await metrics.providerUnreadableRows.get()).values).toMatchObject([{ value: 6 }]);
});

test("hedges and retries share one budget", async () => {
  const { client, stub, fetch } = openClient();
  while (client.reserveHedge());
  stub.reply = failing("unavailable");
  await fetch();
  expect(stub.requests).toHaveLength(1);
});

test("a provider that is down gets a tenth more calls, and ten, but not twice as many", async () => {
  const { stub, fetch } = openClient();
  stub.reply = failing("unavailable");
  await Promise.all(Array.from({ length: 50 }, () => fetch()));
  expect(stub.requests.length).toBeGreaterThanOrEqual(60);
  expect(stub.requests.length).toBeLessThanOrEqual(65);
});

describe("the concurrency limit", () => {
  test("holds for the pages of one search and of several together", async () => {
    const { stub, fetch } = openClient({ concurrentCallsMax: 2 });
    let running = 0;
    let most = 0;
    stub.reply = async (sent) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return everyPage(sent);
    };
    const outcomes = await Promise.all([1, 2, 3].map(() => fetch({ depth: 30 })));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(outcomes.map(() => ["page-1", "page-2", "page-3"]));
    expect([most, stub.requests.length]).toEqual([2, 9]);
  });

  test("makes a provider saturated while all slots are taken", async () => {
    const { client, stub, fetch } = openClient({ concurrentCallsMax: 1 });
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    stub.reply = (sent) => answered.then(() => everyPage(sent));
    expect(client.availability()).toBe("ready");
    const running = fetch();
    await eventually(async () => stub.requests.length === 1);
    expect(client.availability()).toBe("saturated");
    answer();
    await running;
    expect(client.availability()).toBe("ready");
  });

  test("fails an attempt that gets no slot before its deadline, without a call", async () => {
    const { stub, fetch } = openClient({ concurrentCallsMax: 1 });
    stub.reply = hang;
    void fetch();
    await eventually(async () => stub.requests.length === 1);
    const { outcome, trace } = await fetch({ remainingMs: 60 });
    expect(outcome).toEqual({ failure: "busy", outOfTime: true });
    expect(trace.calls).toEqual([]);
    expect(stub.requests).toHaveLength(1);
  });
});

describe("the circuit breaker", () => {
  test("counts an attempt whose first page comes and whose other pages fail as one failure", async () => {
    const { client, stub, times } = openClient();
    stub.reply = (sent) => (sent.pageNumber === 1 ? everyPage(sent) : { failure: "account_refused" });
    await times(4, { depth: 100 });
    expect(client.availability()).toBe("ready");
    await times(1, { depth: 100 });
    expect(client.availability()).toBe("open");
  });

  test("does not open because of one search with many pages", async () => {
    const { client, stub, times } = openClient();
    await times(5);
    stub.reply = (sent) => (sent.pageNumber === 1 ? everyPage(sent) : { failure: "account_refused" });
    await times(1, { depth: 100 });
    expect(client.availability()).toBe("ready");
  });

  test("opens for a provider that hangs, however many attempts get no slot there", async () => {
    const { client, stub, fetch } = openClient({ concurrentCallsMax: 1 });
    for (let round = 0; round < 5; round += 1) {
      const { promise: timedOut, resolve: timeOut } = Promise.withResolvers<Failure>();
      stub.reply = () => timedOut;
      const hanging = fetch();
      for (const { outcome } of await Promise.all([1, 2].map(() => fetch({ remainingMs: 20 })))) {
        expect(outcome).toMatchObject({ failure: "busy" });
      }
      timeOut({ failure: "timeout" });
      expect((await hanging).outcome).toMatchObject({ failure: "timeout" });
    }
    expect(client.availability()).toBe("open");
  });

  test("is bypassed by an attempt that failover makes although the circuit is open", async () => {
    const { client, stub, fetch, times } = openClient();
    stub.reply = failing("account_refused");
    await times(5);
    stub.reply = everyPage;
    expect((await fetch()).outcome).toEqual(["page-1"]);
    expect(client.availability()).toBe("open");
  });
});

const minuteMs = 60_000;

function open() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push(JSON.parse(line)) });
  const metrics = openMetrics();
  const count = countUnreadableRows({ provider: "serpapi", metrics, log });
  const counted = async () => (await metrics.providerUnreadableRows.get()).values;
  return { count, counted, lines };
}

test("rows that a provider's adapter could not read are counted, and the count begins at 0", async () => {
  const { count, counted } = open();
  const labels = { provider: "serpapi" };
  expect(await counted()).toEqual([{ value: 0, labels }]);
  count(page());
  count({ failure: "unreadable" });
  count(page({ unreadableRows: 2 }));
  count(page({ unreadableRows: 3 }));
  expect(await counted()).toEqual([{ value: 5, labels }]);
});

test("they are logged at once, and then at most once a minute", () => {
  const now = vi.spyOn(performance, "now");
  const { count, lines } = open();
  const at = (ms: number, unreadableRows: number) => {
    now.mockReturnValue(ms);
    count(page({ unreadableRows }));
  };
  at(minuteMs, 1);
  at(minuteMs + 1, 2);
  at(2 * minuteMs - 1, 3);
  at(2 * minuteMs, 4);
  now.mockRestore();
  expect(lines).toMatchObject([
    { provider: "serpapi", rows: 1, leftOut: 0 },
    { provider: "serpapi", rows: 4, leftOut: 2 },
  ]);
});

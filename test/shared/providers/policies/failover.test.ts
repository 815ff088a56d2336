import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openMetrics } from "../../../../shared/metrics.ts";
import type { GoogleEngine } from "../../../../worker/engine/google-engine.ts";
import type { Provider } from "../../../../shared/providers/provider.ts";
import { openSandbox } from "../../../../shared/providers/sandbox/sandbox.ts";
import { openSerper } from "../../../../shared/providers/serper/serper.ts";
import { googleOver, openGoogle } from "../../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import { hang, refusal, type SerperStub, startSerperStub, tenOrganic } from "../../../harness/stubs/serper-stub.ts";

const deadlineMs = 20_000;
const passedOverMs = 10_000;

let stub: SerperStub;
let serper: Provider;

beforeEach(async () => {
  stub = await startSerperStub();
  serper = openSerper(engineConfig({ SERPER_API_KEY: "secret", SERPER_BASE_URL: stub.url }));
});
afterEach(async () => {
  vi.useRealTimers();
  await stub.close();
});

const searchWith = (google: GoogleEngine, remainingMs = deadlineMs) => google.search(query(), remainingMs);

async function calledBy(google: GoogleEngine, remainingMs = deadlineMs): Promise<string[]> {
  const { trace } = await searchWith(google, remainingMs);
  return trace.calls.map(({ provider, outcome }) => `${provider}: ${outcome}`);
}

describe("a provider that fails again and again", () => {
  const failing = refusal(403, "Unauthorized.");

  test("is passed over, and costs later searches nothing", async () => {
    stub.otherwise = failing;
    const metrics = openMetrics();
    const google = openGoogle({}, { providers: [serper, openSandbox()], metrics });
    for (let search = 0; search < 5; search += 1) {
      expect(await calledBy(google)).toEqual(["serper: account_refused", "sandbox: ok"]);
    }
    expect(await calledBy(google)).toEqual(["sandbox: ok"]);
    expect(await metrics.registry.metrics()).toContain('provider_breaker_open{provider="serper"} 1');
    await google.close();
  });

  test("is tried again by one search at a time, and asked as before once that one succeeds", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    stub.otherwise = failing;
    const google = googleOver(serper, openSandbox());
    for (let search = 0; search < 6; search += 1) await searchWith(google);
    expect(stub.requests).toHaveLength(5);

    vi.advanceTimersByTime(passedOverMs);
    expect(await calledBy(google)).toEqual(["serper: account_refused", "sandbox: ok"]);
    expect(await calledBy(google)).toEqual(["sandbox: ok"]);

    vi.advanceTimersByTime(passedOverMs);
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<() => void>();
    stub.otherwise = (request, response) => arrive(() => tenOrganic(request, response));
    const trying = calledBy(google);
    const answer = await arrived;
    expect(await calledBy(google)).toEqual(["sandbox: ok"]);
    answer();
    expect(await trying).toEqual(["serper: ok"]);
    stub.otherwise = tenOrganic;
    expect(await calledBy(google)).toEqual(["serper: ok"]);
  });

  test("is asked all the same where there is nobody else", async () => {
    stub.otherwise = failing;
    const google = googleOver(serper);
    for (let search = 0; search < 8; search += 1) await searchWith(google);
    stub.otherwise = tenOrganic;
    expect(await calledBy(google)).toEqual(["serper: ok"]);
  });

  test("is asked as the last one where all others fail, too", async () => {
    stub.otherwise = failing;
    const down: Provider = { ...openSandbox(), transport: () => Promise.reject(new Error("down")) };
    const google = googleOver(serper, down);
    for (let search = 0; search < 5; search += 1) await searchWith(google);
    stub.otherwise = tenOrganic;
    expect((await searchWith(google)).ok).toBe(true);
  });

  test("is not found at fault for queries that it refuses", async () => {
    stub.otherwise = refusal(400, "Query pattern not allowed for free accounts.");
    const google = googleOver(serper, openSandbox());
    for (let search = 0; search < 10; search += 1) await searchWith(google);
    expect(stub.requests).toHaveLength(10);
  });

  test("is sent a second call for one in ten and ten more, and not twice as many", async () => {
    stub.otherwise = refusal(500, "Oops");
    const google = googleOver(serper);
    await Promise.all(Array.from({ length: 50 }, () => searchWith(google)));
    expect(stub.requests.length).toBeGreaterThanOrEqual(60);
    expect(stub.requests.length).toBeLessThanOrEqual(65);
  });
});

describe("calls at once", () => {
  let running: number;
  let most: number;

  beforeEach(() => {
    running = 0;
    most = 0;
    stub.otherwise = (request, response) => {
      running += 1;
      most = Math.max(most, running);
      setTimeout(() => {
        running -= 1;
        tenOrganic(request, response);
      }, 20);
    };
  });

  test("a provider has no more than its limit; what is over waits, pages of one search too", async () => {
    const google = googleOver({ ...serper, concurrentCallsMax: 2 });
    const answers = await Promise.all([1, 2, 3].map(() => google.search(query({ depth: 30 }), deadlineMs)));
    expect(answers.every(({ ok }) => ok)).toBe(true);
    expect([most, stub.requests.length]).toEqual([2, 9]);
  });

  test("what a busy provider has no room for goes to the next one", async () => {
    const google = googleOver({ ...serper, concurrentCallsMax: 1 }, openSandbox());
    const calls = await Promise.all([calledBy(google), calledBy(google)]);
    expect(calls).toEqual([["serper: ok"], ["sandbox: ok"]]);
  });

  test("a search that finds no room until its deadline timed out, and was never sent", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<() => void>();
    stub.otherwise = (request, response) => arrive(() => tenOrganic(request, response));
    const google = googleOver({ ...serper, concurrentCallsMax: 1 });
    const first = calledBy(google);
    const answer = await arrived;
    expect(await searchWith(google, 100)).toMatchObject({ code: "engine_timeout", trace: { calls: [] } });
    answer();
    expect(await first).toEqual(["serper: ok"]);
    expect(stub.requests).toHaveLength(1);
  });
});

describe("a provider that hangs", () => {
  const hedgeAfterMs = 40;
  const hedged = () =>
    openGoogle({ SERP_HEDGE_AFTER_MS: String(hedgeAfterMs) }, { providers: [serper, openSandbox()] });

  test("leaves the next one time to answer, however short the deadline", async () => {
    stub.otherwise = hang;
    expect(await calledBy(googleOver(serper, openSandbox()), 900)).toEqual(["serper: timeout", "sandbox: ok"]);
  });

  test("is hedged where the operator wants it: the next one is asked as well, and the first answer counts", async () => {
    stub.otherwise = hang;
    const google = hedged();
    const answer = await searchWith(google);
    expect(answer).toMatchObject({ ok: true, trace: { provider: "sandbox" } });
    expect(answer.trace.calls.map(({ outcome }) => outcome).toSorted()).toEqual(["ok", "outrun"]);
    await google.close();
  });

  test("counts as failing when it is outrun, and is passed over", async () => {
    stub.otherwise = hang;
    const google = hedged();
    for (let search = 0; search < 5; search += 1) await searchWith(google);
    expect(await calledBy(google)).toEqual(["sandbox: ok"]);
    await google.close();
  });

  test("who is fast enough, or merely fails, is never hedged", async () => {
    const google = hedged();
    expect(await calledBy(google)).toEqual(["serper: ok"]);
    stub.otherwise = refusal(403, "Unauthorized.");
    expect(await calledBy(google)).toEqual(["serper: account_refused", "sandbox: ok"]);
    await google.close();
  });

  test("a hedge that fails leaves the search to the one that was slow", async () => {
    const down: Provider = { ...openSandbox(), transport: () => Promise.reject(new Error("down")) };
    const google = openGoogle({ SERP_HEDGE_AFTER_MS: "1" }, { providers: [serper, down] });
    stub.otherwise = (request, response) => void setTimeout(() => tenOrganic(request, response), 400);
    const answer = await searchWith(google);
    expect(answer).toMatchObject({ ok: true, trace: { provider: "serper" } });
    expect(answer.trace.calls.filter(({ provider }) => provider === "sandbox").length).toBeGreaterThan(0);
    await google.close();
  });
});

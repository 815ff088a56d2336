import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Attempt, cancellationFailure, newTrace } from "../../../../worker/providers/policies/attempt.ts";
import { type FailoverProvider, fetchWithFailover } from "../../../../worker/providers/policies/failover.ts";
import type { Availability } from "../../../../worker/providers/policies/provider-client.ts";
import type { Failure, Page } from "../../../../worker/providers/provider.ts";
import { openSandbox } from "../../../../worker/providers/sandbox/sandbox.ts";
import { eventually } from "../../../harness/assertions/eventually.ts";
import { query } from "../../../harness/fixtures/queries.ts";
import { farMs, pageTitled, titlesOf } from "./fixtures.ts";

afterEach(() => void vi.useRealTimers());

type Started = { attempt: Attempt; sendFirstPage: () => void; end: (outcome: Page[] | Failure) => void };

/** A provider whose attempts end when the test says so, or when they are cancelled. */
class FakeProvider implements FailoverProvider {
  readonly provider;
  state: Availability = "ready";
  hedgesLeft = 1;
  checks = 0;
  attempts: Started[] = [];

  constructor(name: string) {
    this.provider = { ...openSandbox(), name };
  }

  availability(): Availability {
    this.checks += 1;
    return this.state;
  }

  reserveHedge(): boolean {
    this.hedgesLeft -= 1;
    return this.hedgesLeft >= 0;
  }

  fetchPages(attempt: Attempt, onFirstPage: () => void): Promise<Page[] | Failure> {
    const { promise, resolve } = Promise.withResolvers<Page[] | Failure>();
    attempt.cancellation.signal.addEventListener("abort", () => resolve(cancellationFailure(attempt)));
    const sendFirstPage = () => {
      attempt.hasFirstPage = true;
      onFirstPage();
    };
    this.attempts.push({ attempt, sendFirstPage, end: resolve });
    return promise;
  }

  answer(outcome: Page[] | Failure): void {
    const last = this.attempts.at(-1);
    if (!last) throw new Error(`${this.provider.name} was not tried.`);
    if (!("failure" in outcome)) last.sendFirstPage();
    last.end(outcome);
  }

  async hasStarted(times = 1): Promise<void> {
    await eventually(async () => this.attempts.length === times);
  }
}

const pagesOf = (name: string) => [pageTitled(name)];
const unavailable: Failure = { failure: "unavailable" };
const blocked: Failure = { failure: "blocked" };
const fakes = (...names: string[]) => names.map((name) => new FakeProvider(name));

/** Starts a search; `ended` has its titles or failures. */
function search(providers: FailoverProvider[], { remainingMs = farMs, hedgeAfterMs = 0 } = {}) {
  const trace = newTrace();
  const deadlineAtMs = performance.now() + remainingMs;
  const ended = fetchWithFailover({ providers, query: query(), deadlineAtMs, hedgeAfterMs, trace }).then((outcome) =>
    "pages" in outcome ? { titles: titlesOf(outcome.pages), from: trace.provider } : outcome,
  );
  return { ended, trace, deadlineAtMs };
}

/** The two providers of most tests. */
function twoFakes(): [FakeProvider, FakeProvider] {
  return [new FakeProvider("first"), new FakeProvider("second")];
}

describe("one provider after the other", () => {
  test("the first one that answers in full answers the search, and no other is tried", async () => {
    const [first, second] = twoFakes();
    const { ended } = search([first, second]);
    first.answer(pagesOf("first"));
    expect(await ended).toEqual({ titles: ["first"], from: "first" });
    expect(second.attempts).toEqual([]);
  });

  test("when all fail, the failures are returned in order", async () => {
    const [first, second] = twoFakes();
    const { ended, trace } = search([first, second]);
    first.answer(unavailable);
    await second.hasStarted();
    second.answer(blocked);
    expect(await ended).toEqual({ failures: [unavailable, blocked], isCutShort: false });
    expect(trace.provider).toBe("second");
  });

  test("with too little time for a call no further provider is tried, and the failure says so", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const [first, second] = twoFakes();
    const { ended } = search([first, second], { remainingMs: 1_000 });
    vi.advanceTimersByTime(951);
    first.answer(unavailable);
    expect(await ended).toEqual({ failures: [unavailable], isCutShort: true });
    expect(await search([first], { remainingMs: 49 }).ended).toEqual({ failures: [], isCutShort: true });
  });

  test("an attempt gets two thirds of the time that is left, and the last provider all of it", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const [first, second, third] = fakes("first", "second", "third");
    if (!first || !second || !third) throw new Error("There are three.");
    const startedAtMs = performance.now();
    const { ended } = search([first, second, third], { remainingMs: 3_000 });
    const deadlineOf = ({ attempts }: FakeProvider) => (attempts[0]?.attempt.deadlineAtMs ?? 0) - startedAtMs;
    expect(deadlineOf(first)).toBeCloseTo(2_000);
    vi.advanceTimersByTime(1_500);
    first.answer(unavailable);
    await nextTurn();
    expect(deadlineOf(second)).toBeCloseTo(2_500);
    second.answer(unavailable);
    await nextTurn();
    expect(deadlineOf(third)).toBeCloseTo(3_000);
    third.answer(pagesOf("third"));
    expect(await ended).toEqual({ titles: ["third"], from: "third" });
  });

  test.each([
    { callMs: 25_000, leftMs: 30_000, attemptMs: 25_000 },
    { callMs: 25_000, leftMs: 28_000, attemptMs: 23_000 },
    { callMs: 20_000, leftMs: 30_000, attemptMs: 20_000 },
    { callMs: 10_000, leftMs: 30_000, attemptMs: 20_000 },
    { callMs: 25_000, leftMs: 12_000, attemptMs: 8_000 },
  ])(
    "an attempt gets $attemptMs of $leftMs ms where a call may take $callMs",
    async ({ callMs, leftMs, attemptMs }) => {
      vi.useFakeTimers({ toFake: ["performance"] });
      const [first, second] = twoFakes();
      first.provider.callTimeoutMs = callMs;
      const startedAtMs = performance.now();
      search([first, second], { remainingMs: leftMs });
      expect((first.attempts[0]?.attempt.deadlineAtMs ?? 0) - startedAtMs).toBeCloseTo(attemptMs);
    },
  );

  test("an attempt leaves no time to a provider whose circuit is open, which is tried all the same", async () => {
    const [first, second] = twoFakes();
    second.state = "open";
    const { ended, deadlineAtMs } = search([first, second]);
    expect(first.attempts[0]?.attempt.deadlineAtMs).toBe(deadlineAtMs);
    first.answer(unavailable);
    await second.hasStarted();
    second.answer(pagesOf("second"));
    expect(await ended).toEqual({ titles: ["second"], from: "second" });
  });
});

describe("a hedge", () => {
  const hedgeAfterMs = 2;

  /** A search whose hedge has started at the second provider. */
  async function hedged() {
    const [first, second] = twoFakes();
    const { ended } = search([first, second], { hedgeAfterMs });
    await second.hasStarted();
    return { first, second, ended };
  }

  test("is cancelled when the first provider answers after all, which is not held against the hedge's provider", async () => {
    const { first, second, ended } = await hedged();
    first.answer(pagesOf("first"));
    expect(await ended).toEqual({ titles: ["first"], from: "first" });
    expect(second.attempts[0]?.attempt.cancellation.signal.reason).toEqual({ failure: "hedge_cancelled" });
  });

  test("that fails leaves the search to the provider that was slow", async () => {
    const { first, second, ended } = await hedged();
    second.answer(blocked);
    first.answer(pagesOf("first"));
    expect(await ended).toEqual({ titles: ["first"], from: "first" });
  });

  test("that wins and fails later makes failover try the cancelled provider again", async () => {
    const { first, second, ended } = await hedged();
    second.attempts[0]?.sendFirstPage();
    second.attempts[0]?.end(blocked);
    await first.hasStarted(2);
    first.answer(pagesOf("first"));
    expect(await ended).toEqual({ titles: ["first"], from: "first" });
  });

  test("does not start for a provider whose first page has arrived", async () => {
    const [first, second] = twoFakes();
    const { ended } = search([first, second], { hedgeAfterMs });
    first.attempts[0]?.sendFirstPage();
    await sleep(10 * hedgeAfterMs);
    expect([second.hedgesLeft, second.attempts]).toEqual([1, []]);
    first.answer(pagesOf("first"));
    await ended;
  });

  test.each<Availability>(["saturated", "open"])("waits while the next provider is %s", async (state) => {
    const [first, second] = twoFakes();
    second.state = state;
    const { ended } = search([first, second], { hedgeAfterMs });
    await eventually(async () => second.checks > 2);
    expect([second.attempts, second.hedgesLeft]).toEqual([[], 1]);
    second.state = "ready";
    await second.hasStarted();
    second.answer(pagesOf("second"));
    expect(await ended).toEqual({ titles: ["second"], from: "second" });
  });

  test("does not start at a provider without retry budget", async () => {
    const [first, second] = twoFakes();
    second.hedgesLeft = 0;
    const { ended } = search([first, second], { hedgeAfterMs });
    await eventually(async () => second.checks > 2);
    expect(second.attempts).toEqual([]);
    first.answer(pagesOf("first"));
    expect(await ended).toEqual({ titles: ["first"], from: "first" });
  });

  test("starts only once in a search", async () => {
    const [first, second] = twoFakes();
    const third = new FakeProvider("third");
    const { ended } = search([first, second, third], { hedgeAfterMs });
    await second.hasStarted();
    await sleep(10 * hedgeAfterMs);
    expect([third.hedgesLeft, third.attempts]).toEqual([1, []]);
    second.answer(pagesOf("second"));
    await ended;
  });

  test("never starts where hedging is turned off", async () => {
    const [first, second] = twoFakes();
    const { ended } = search([first, second], { hedgeAfterMs: 0 });
    await sleep(20);
    expect([second.hedgesLeft, second.attempts]).toEqual([1, []]);
    first.answer(pagesOf("first"));
    await ended;
  });
});

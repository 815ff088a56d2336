import { describe, expect, test, vi } from "vitest";
import { type CallRecorder, cancelAttempt } from "../../../../worker/providers/policies/attempt.ts";
import {
  type Failure,
  type FailureKind,
  failureKinds,
  type PageAnswer,
} from "../../../../worker/providers/provider.ts";
import { attemptFor, everyPage, failing, farMs, hang, openClient, page, pageTitled, type Reply } from "./fixtures.ts";

const throwing = () => {
  throw new Error("a defect");
};

describe("the pages of an attempt", () => {
  test.each([
    [1, [1]],
    [10, [1]],
    [11, [1, 2]],
    [35, [1, 2, 3, 4]],
  ])("are for a depth of %d the pages %j, in order", async (depth, numbers) => {
    const { fetch, requested, onFirstPage } = openClient();
    const { outcome, trace } = await fetch({ depth });
    expect(outcome).toEqual(numbers.map((each) => `page-${each}`));
    expect(trace.calls.map((call) => call.outcome)).toEqual(numbers.map(() => "ok"));
    expect(requested()).toEqual(numbers);
    expect(onFirstPage).toHaveBeenCalledOnce();
  });

  test("end with the first one where that says that there are no more", async () => {
    const { fetch, requested } = openClient({ read: () => pageTitled("all") });
    expect(await fetch({ depth: 100 })).toMatchObject({ outcome: ["all"] });
    expect(requested()).toEqual([1]);
  });

  test("are fetched at once after the first one, and their order does not depend on which comes first", async () => {
    const { stub, fetch } = openClient();
    const third = Promise.withResolvers<void>();
    stub.reply = async (sent) => {
      if (sent.pageNumber === 2) await third.promise;
      if (sent.pageNumber === 3) third.resolve();
      return everyPage(sent);
    };
    expect((await fetch({ depth: 30 })).outcome).toEqual(["page-1", "page-2", "page-3"]);
  });

  test("are none after a first page that fails", async () => {
    const { stub, run, requested, onFirstPage } = openClient();
    stub.reply = failing("account_refused");
    const attempt = attemptFor({ depth: 30 });
    expect((await run(attempt)).outcome).toEqual({ failure: "account_refused" });
    expect([requested(), attempt.hasFirstPage]).toEqual([[1], false]);
    expect(onFirstPage).not.toHaveBeenCalled();
  });

  test("are dropped when one of them fails, whose failure is that of the attempt", async () => {
    const { stub, run } = openClient();
    stub.reply = (sent) =>
      sent.pageNumber === 1 ? everyPage(sent) : sent.pageNumber === 3 ? { failure: "blocked" } : hang(sent);
    const attempt = attemptFor({ depth: 40 });
    expect((await run(attempt)).outcome).toEqual({ failure: "blocked" });
    expect(attempt.cancellation.signal.reason).toEqual({ failure: "dropped" });
  });

  test.each([
    ["has no organic result", page({ hasMore: true })],
    ["repeats the results of an earlier one", pageTitled("page-1", { hasMore: true })],
  ])("are asked for once more where one before the last %s", async (_, lost) => {
    const asked: number[] = [];
    const read = ({ body }: PageAnswer) => {
      asked.push(Number(body));
      const isLost = body === "3" && asked.indexOf(3) === asked.lastIndexOf(3);
      return isLost ? lost : pageTitled(`page-${body}`, { hasMore: true, costMicroUsd: 1 });
    };
    const { outcome, trace } = await openClient({ read }).fetch({ depth: 40 });
    expect(outcome).toEqual(["page-1", "page-2", "page-3", "page-4"]);
    expect([asked.length, trace.costMicroUsd]).toEqual([5, 4 + lost.costMicroUsd]);
  });

  test("are unreadable where one before the last has no organic result twice, or once without a budget of retries", async () => {
    const read = ({ body }: PageAnswer) =>
      body === "2" ? page({ hasMore: true }) : pageTitled(`page-${body}`, { hasMore: true });
    const { fetch, requested, spendBudget } = openClient({ read });
    expect((await fetch({ depth: 30 })).outcome).toEqual({ failure: "unreadable" });
    expect(requested().filter((number) => number === 2)).toHaveLength(2);
    spendBudget();
    expect((await fetch({ depth: 30 })).outcome).toEqual({ failure: "unreadable" });
    expect(requested().filter((number) => number === 2)).toHaveLength(3);
  });

  test("are unreadable where no organic result has an address or a domain, or rows or stated results were lost", async () => {
    const lost = pageTitled("a").elements.map((element) => ({ ...element, url: "", domain: "" }));
    const other = lost.map((element) => ({ ...element, type: "related_searches" as const }));
    const questions = lost.map((element) => ({ ...element, type: "people_also_ask" as const }));
    const unreadable = [
      page({ elements: lost }),
      page({ elements: other, unreadableRows: 1 }),
      page({ elements: questions }),
      page({ totalResultsCount: 11 }),
    ];
    for (const found of unreadable)
      expect((await openClient({ read: () => ({ ...found, costMicroUsd: 5 }) }).fetch()).outcome).toEqual({
        failure: "unreadable",
        costMicroUsd: 5,
      });
    const named = lost.map((element) => ({ ...element, domain: "a.example" }));
    for (const found of [page({ elements: named }), page({ elements: other })])
      expect((await openClient({ read: () => found }).fetch()).outcome).toHaveLength(1);
  });

  test("are not repeats of each other because their results have a domain but no address", async () => {
    const named = pageTitled("a").elements.map((element) => ({ ...element, url: "" }));
    const read = ({ body }: PageAnswer) => (body === "3" ? pageTitled("b") : page({ elements: named, hasMore: true }));
    const { fetch, requested } = openClient({ read });
    expect((await fetch({ depth: 30 })).outcome).toEqual(["a", "a", "b"]);
    expect(requested()).toEqual([1, 2, 3]);
  });

  test("may be empty at the end, whatever number of results is stated, and a first one may have no organic result", async () => {
    const read = ({ body }: PageAnswer) =>
      body === "2" ? pageTitled("page-2") : page({ hasMore: true, totalResultsCount: body === "1" ? 0 : 12 });
    const { fetch, requested } = openClient({ read });
    expect((await fetch({ depth: 50 })).outcome).toEqual(["page-2"]);
    expect(requested()).toEqual([1, 2, 3, 4, 5]);
  });

  test("do not count if the first one comes after the cancellation", async () => {
    const { stub, run, requested, onFirstPage } = openClient();
    const attempt = attemptFor({ depth: 30 });
    stub.reply = (sent) => {
      cancelAttempt(attempt, "lost_hedge");
      return everyPage(sent);
    };
    const { outcome, trace } = await run(attempt);
    expect(outcome).toEqual({ failure: "lost_hedge" });
    expect(trace.calls).toMatchObject([{ outcome: "lost_hedge" }]);
    expect(requested()).toEqual([1]);
    expect(onFirstPage).not.toHaveBeenCalled();
  });
});

describe("a call", () => {
  test("is in the trace with its provider, outcome, duration and cost, whether or not it succeeds", async () => {
    const paid = openClient({ read: () => page({ costMicroUsd: 1_000 }) });
    const call = { provider: "sandbox", ms: expect.any(Number) };
    expect((await paid.fetch()).trace).toMatchObject({
      calls: [{ ...call, outcome: "ok", costMicroUsd: 1_000 }],
      costMicroUsd: 1_000,
    });
    const blocked = openClient({ read: () => ({ failure: "blocked", costMicroUsd: 20 }) });
    expect((await blocked.fetch()).trace).toMatchObject({
      calls: [{ ...call, outcome: "blocked", costMicroUsd: 20 }],
      costMicroUsd: 20,
    });
  });

  test("whose adapter throws has an unreadable answer, and never an exception", async () => {
    expect((await openClient({ read: throwing }).fetch()).outcome).toEqual({ failure: "unreadable" });
  });

  test("is recorded with its raw answer, also with one that the adapter cannot read, and without one", async () => {
    const recorded: unknown[] = [];
    const recorder: CallRecorder = { requestId: "req_1", record: (call, got) => recorded.push([call.outcome, got]) };
    const { run } = openClient();
    await run({ ...attemptFor(), recorder });
    await openClient({ read: throwing }).run({ ...attemptFor(), recorder });
    const silent = openClient();
    silent.stub.reply = failing("timeout");
    await silent.run({ ...attemptFor(), recorder });
    const answer = { status: 200, headers: {}, body: "1" };
    expect(recorded).toEqual([
      ["ok", { pageNumber: 1, answer }],
      ["unreadable", { pageNumber: 1, answer }],
      ["timeout", { pageNumber: 1, answer: undefined }],
    ]);
  });

  test("is not sent with less than 50 ms left", async () => {
    const { fetch, requested } = openClient();
    const { outcome, trace } = await fetch({ remainingMs: 49 });
    expect(outcome).toEqual({ failure: "busy", outOfTime: true });
    expect([requested(), trace.calls]).toEqual([[], []]);
  });

  test("says whether a failure was a 503, of all server errors, unless the adapter knows that it is not about the load", async () => {
    const outcomeOf = async (status: number, failure: Failure = { failure: "blocked" }) => {
      const { stub, fetch } = openClient({ read: () => failure });
      stub.reply = () => ({ status, headers: {}, body: "" });
      return (await fetch()).outcome;
    };
    expect(await outcomeOf(503)).toEqual({ failure: "blocked", overloaded: true });
    expect(await outcomeOf(500)).toEqual({ failure: "blocked" });
    const ofOneSearch: Failure = { failure: "blocked", overloaded: false };
    expect(await outcomeOf(503, ofOneSearch)).toEqual(ofOneSearch);
  });
});

describe("the timeout of a call", () => {
  const callTimeoutMs = 10_000;

  test("is the provider's, and a timeout then is the provider's fault", async () => {
    const { stub, fetch } = openClient({ callTimeoutMs });
    stub.reply = failing("timeout");
    expect((await fetch()).outcome).toEqual({ failure: "timeout", outOfTime: false });
    expect(stub.requests).toMatchObject([{ timeoutMs: callTimeoutMs }]);
  });

  test.each<[string, number, FailureKind]>([
    ["held against a provider that usually answers in less than half of it", 2_400, "timeout"],
    ["not held against one that usually needs more than half of it", 2_600, "out_of_time"],
  ])("is the time that is left if that is less; it is %s", async (_, usualMs, failure) => {
    const { stub, fetch } = openClient({ callTimeoutMs });
    const now = vi.spyOn(performance, "now");
    let nowMs = 0;
    now.mockImplementation(() => nowMs);
    stub.reply = (sent) => {
      nowMs += usualMs;
      return everyPage(sent);
    };
    await fetch();
    stub.reply = failing("timeout");
    expect((await fetch({ remainingMs: 5_000 })).outcome).toEqual({ failure, outOfTime: true });
    expect(stub.requests.at(-1)).toMatchObject({ timeoutMs: 5_000 });
    // Also a slow provider answers one of so many calls, unless it hangs.
    const failures: unknown[] = [];
    for (let call = 2; call <= 21; call += 1) failures.push((await fetch({ remainingMs: 5_000 })).outcome);
    expect(failures.at(-2)).toEqual({ failure, outOfTime: true });
    expect(failures.at(-1)).toEqual({ failure: "timeout", outOfTime: true });
    now.mockRestore();
  });
});

describe("a retry", () => {
  // Object.keys() loses the literal types.
  const kinds = Object.keys(failureKinds) as FailureKind[];

  test.each(kinds)("follows %s only if that may pass, and then its own outcome counts", async (failure) => {
    const { stub, fetch } = openClient();
    stub.reply = (sent) => (stub.requests.length === 1 ? { failure } : everyPage(sent));
    const { outcome, trace } = await fetch();
    const { retry } = failureKinds[failure];
    expect(outcome).toMatchObject(retry ? ["page-1"] : { failure });
    expect(trace.calls.map((call) => call.outcome)).toEqual(retry ? [failure, "ok"] : [failure]);
  });

  test("is made once", async () => {
    const { stub, fetch } = openClient();
    stub.reply = failing("unavailable");
    expect((await fetch()).outcome).toEqual({ failure: "unavailable" });
    expect(stub.requests).toHaveLength(2);
  });

  test("for which there is no time is not made, costs no budget, and the failure says so", async () => {
    const { stub, fetch, spendBudget } = openClient();
    stub.reply = failing("unavailable");
    expect((await fetch({ remainingMs: 100 })).outcome).toEqual({ failure: "unavailable", outOfTime: true });
    expect([stub.requests.length, spendBudget()]).toEqual([1, 10]);
  });

  test("is not made once the attempt is cancelled", async () => {
    const { stub, run } = openClient();
    const attempt = attemptFor();
    stub.reply = () => {
      setImmediate(() => cancelAttempt(attempt, "dropped"));
      return { failure: "unavailable" };
    };
    await run(attempt);
    expect(stub.requests).toHaveLength(1);
  });

  test("shares a budget with hedges: ten at once, one for each ten calls, and never more than ten saved up", async () => {
    const { stub, fetch, times, spendBudget } = openClient();
    expect(spendBudget()).toBe(10);
    await times(9);
    expect(spendBudget()).toBe(0);
    await times(1);
    expect(spendBudget()).toBe(1);
    await times(200);
    expect(spendBudget()).toBe(10);
    stub.reply = failing("unavailable");
    const before = stub.requests.length;
    await fetch();
    expect(stub.requests.length - before).toBe(1);
  });

  test("adds a tenth and ten to the calls to a provider that is down, and does not double them", async () => {
    const { stub, fetch } = openClient();
    stub.reply = failing("unavailable");
    await Promise.all(Array.from({ length: 50 }, () => fetch()));
    expect(stub.requests.length).toBeGreaterThanOrEqual(60);
    expect(stub.requests.length).toBeLessThanOrEqual(65);
  });
});

describe("the circuit breaker", () => {
  const otherPagesFail: Reply = (sent) => (sent.pageNumber === 1 ? everyPage(sent) : { failure: "account_refused" });

  test("counts an attempt whose first page comes and whose other pages fail as one failure", async () => {
    const { client, stub, times } = openClient();
    stub.reply = otherPagesFail;
    await times(4, { depth: 100 });
    expect(client.availability()).toBe("ready");
    await times(1, { depth: 100 });
    expect(client.availability()).toBe("open");
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
});

test("rows that the adapter could not read are counted from 0, and logged at once and then once a minute", async () => {
  const { fetch, metrics, lines } = openClient({
    read: ({ body }) => pageTitled("page", { hasMore: true, unreadableRows: Number(body) }),
  });
  const counted = async () => (await metrics.providerUnreadableRows.get()).values;
  const labels = { provider: "sandbox" };
  expect(await counted()).toEqual([{ value: 0, labels }]);
  expect((await metrics.truncatedAnswers.get()).values).toEqual([{ value: 0, labels }]);
  await fetch({ depth: 30 });
  expect(await counted()).toEqual([{ value: 6, labels }]);
  const now = vi.spyOn(performance, "now").mockReturnValue(performance.now() + farMs);
  await fetch();
  now.mockRestore();
  expect(lines).toMatchObject([
    { provider: "sandbox", rows: 1, leftOut: 0 },
    { provider: "sandbox", rows: 1, leftOut: 2 },
  ]);
});

import { describe, expect, test } from "vitest";
import { cancelAttempt } from "../../../../worker/providers/policies/attempt.ts";
import type { ProviderHttp } from "../../../../worker/providers/policies/http.ts";
import { AnswerTime, callForPage } from "../../../../worker/providers/policies/page-call.ts";
import type { CallRecorder } from "../../../../worker/providers/policies/trace.ts";
import type { Failure, PageAnswer, PageOutcome, Provider } from "../../../../worker/providers/provider.ts";
import { openSandbox } from "../../../../worker/providers/sandbox/sandbox.ts";
import { attemptFor, page } from "./fixtures.ts";

const callTimeoutMs = 10_000;
const answer: PageAnswer = { status: 200, headers: {}, body: "" };
const reading = (outcome: PageOutcome): Provider => ({ ...openSandbox(), callTimeoutMs, read: () => outcome });

/** An HTTP policy that returns this answer and lists the timeouts of its calls. */
function answering(sent: PageAnswer | Failure | (() => PageAnswer | Failure)) {
  const timeouts: number[] = [];
  const http: ProviderHttp = {
    send: async (_provider, _request, { timeoutMs }) => {
      timeouts.push(timeoutMs);
      return typeof sent === "function" ? sent() : sent;
    },
    close: async () => undefined,
  };
  return { http, timeouts, answerTime: new AnswerTime() };
}

test("a call is recorded in the trace with its provider, outcome, duration and cost", async () => {
  const attempt = attemptFor();
  const paid = page({ costMicroUsd: 1_000 });
  const blocked: Failure = { failure: "blocked", costMicroUsd: 20 };
  expect(await callForPage(attempt, 1, { provider: reading(paid), ...answering(answer) })).toBe(paid);
  expect(await callForPage(attempt, 2, { provider: reading(blocked), ...answering(answer) })).toBe(blocked);
  const call = { provider: "sandbox", ms: expect.any(Number) };
  expect(attempt.trace.calls).toEqual([
    { ...call, outcome: "ok", costMicroUsd: 1_000 },
    { ...call, outcome: "blocked", costMicroUsd: 20 },
  ]);
  expect(attempt.trace.costMicroUsd).toBe(1_020);
});

test("an adapter that throws has an unreadable answer, and never an exception", async () => {
  const broken: Provider = {
    ...openSandbox(),
    read: () => {
      throw new Error("a defect");
    },
  };
  expect(await callForPage(attemptFor(), 1, { provider: broken, ...answering(answer) })).toEqual({
    failure: "unreadable",
  });
});

test("a recorder gets each call with its raw answer, also one that the adapter cannot read, and a call without one", async () => {
  const recorded: unknown[] = [];
  const recorder: CallRecorder = { requestId: "req_1", record: (call, asked) => recorded.push([call.outcome, asked]) };
  const attempt = { ...attemptFor(), recorder };
  await callForPage(attempt, 1, { provider: reading(page()), ...answering(answer) });
  const throwing: Provider = {
    ...openSandbox(),
    read: () => {
      throw new Error("a defect");
    },
  };
  await callForPage(attempt, 2, { provider: throwing, ...answering(answer) });
  await callForPage(attempt, 3, { provider: reading(page()), ...answering({ failure: "unavailable" }) });
  expect(recorded).toEqual([
    ["ok", { pageNumber: 1, answer }],
    ["unreadable", { pageNumber: 2, answer }],
    ["unavailable", { pageNumber: 3, answer: undefined }],
  ]);
});

test("with less than 50 ms left no call is sent and none is recorded", async () => {
  const attempt = attemptFor({ remainingMs: 49 });
  const { timeouts, ...called } = answering(answer);
  expect(await callForPage(attempt, 1, { provider: reading(page()), ...called })).toEqual({
    failure: "busy",
    outOfTime: true,
  });
  expect([timeouts, attempt.trace.calls]).toEqual([[], []]);
});

describe("the timeout of a call", () => {
  const timeout: Failure = { failure: "timeout" };

  test("is the provider's, and a timeout then is the provider's fault", async () => {
    const { timeouts, ...called } = answering(timeout);
    const outcome = await callForPage(attemptFor(), 1, { provider: reading(page()), ...called });
    expect(outcome).toEqual({ failure: "timeout", outOfTime: false });
    expect(timeouts).toEqual([callTimeoutMs]);
  });

  test("is the time that is left if that is less, and a timeout then is for lack of time", async () => {
    const { timeouts, ...called } = answering(timeout);
    const outcome = await callForPage(attemptFor({ remainingMs: 5_000 }), 1, { provider: reading(page()), ...called });
    expect(outcome).toEqual({ failure: "timeout", outOfTime: true });
    expect(timeouts[0]).toBeLessThanOrEqual(5_000);
  });
});

describe("a call that times out with less time than its provider may take", () => {
  const timedOut = (answeredInMs: number) => {
    const { answerTime, ...called } = answering({ failure: "timeout" });
    answerTime.answered(answeredInMs);
    return callForPage(attemptFor({ remainingMs: 5_000 }), 1, { provider: reading(page()), ...called, answerTime });
  };

  test("says nothing about the provider if the provider usually needs more than half of that time", async () => {
    expect(await timedOut(2_600)).toEqual({ failure: "out_of_time", outOfTime: true });
  });

  test("is the provider's fault if it usually answers in less", async () => {
    expect(await timedOut(2_400)).toEqual({ failure: "timeout", outOfTime: true });
  });
});

test("a cancelled call ends with the reason of the cancellation", async () => {
  const attempt = attemptFor();
  const cancelled = answering(() => {
    cancelAttempt(attempt, "lost_hedge");
    return { failure: "timeout" };
  });
  expect(await callForPage(attempt, 1, { provider: reading(page()), ...cancelled })).toEqual({ failure: "lost_hedge" });
  expect(attempt.trace.calls).toMatchObject([{ outcome: "lost_hedge" }]);
});

test("a failure says whether the answer was a 503, of all server errors", async () => {
  const provider = reading({ failure: "unavailable" });
  const outcome = (status: number) => callForPage(attemptFor(), 1, { provider, ...answering({ ...answer, status }) });
  expect(await outcome(503)).toEqual({ failure: "unavailable", overloaded: true });
  expect(await outcome(500)).toEqual({ failure: "unavailable" });
});

import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Delivery } from "../../../api/search/delivery.ts";
import { newSearchRequest } from "../../../api/search/search-request.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { protocolTimes } from "../../../shared/protocol-times.ts";
import { readQuery } from "../../../shared/query/query.ts";
import { callerWith } from "../../harness/fixtures/caller.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function begin() {
  const decisions: string[] = [];
  const confirm = () => void decisions.push("confirmed");
  const reverse = async () => void decisions.push("reversed");
  const delivery = new Delivery({ confirmations: { confirm, reverse }, metrics: openMetrics() });
  const request = newSearchRequest({
    requestId: "req_1",
    deadlineStartsAtMs: performance.now(),
    timeoutMs: 30_000,
    caller: callerWith(),
    query: readQuery({ keyword: "a" }),
    idempotencyKey: undefined,
    disconnected: new AbortController().signal,
  });
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  return { flushed: delivery.begin(request, response, undefined), response, decisions };
}

test("a caller that has a whole copy of the answer in time may take its time for the rest", () => {
  const { flushed, response, decisions } = begin();
  flushed();
  vi.advanceTimersByTime(10 * protocolTimes.deliveryTimeoutMs);
  expect(response.destroyed).toBe(false);
  response.emit("close");
  expect(decisions).toEqual(["confirmed"]);
});

test("a caller that has no whole copy in time is disconnected, and what comes later decides nothing", async () => {
  const { flushed, response, decisions } = begin();
  await vi.advanceTimersByTimeAsync(protocolTimes.deliveryTimeoutMs);
  expect(response.destroyed).toBe(true);
  response.emit("close");
  flushed();
  expect(decisions).toEqual(["reversed"]);
});

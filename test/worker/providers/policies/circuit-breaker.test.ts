import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Metrics, openMetrics } from "../../../../shared/metrics.ts";
import { CircuitBreaker } from "../../../../worker/providers/policies/circuit-breaker.ts";
import type { Failure, FailureKind, Page } from "../../../../worker/providers/provider.ts";
import { held, page, silentLog } from "./fixtures.ts";

const openMs = 10_000;

let metrics: Metrics;
let breaker: CircuitBreaker;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  metrics = openMetrics();
  breaker = new CircuitBreaker({ provider: "serper", metrics, log: silentLog });
});
afterEach(() => void vi.useRealTimers());

type Outcome = "ok" | FailureKind;
const toPages = (outcome: Outcome): Page[] | Failure => (outcome === "ok" ? [page()] : { failure: outcome });

const run = (...outcomes: Outcome[]) => runOf("one", ...outcomes);

async function runOf(organizationId: string, ...outcomes: Outcome[]): Promise<void> {
  for (const outcome of outcomes) {
    const pages = toPages(outcome);
    expect(await breaker.run(async () => pages, organizationId)).toBe(pages);
  }
}

const repeat = (outcome: Outcome, times: number): Outcome[] => Array.from({ length: times }, () => outcome);
const openCircuit = () => run(...repeat("timeout", 5));
const gauge = async () => (await metrics.providerBreakerOpen.get()).values[0]?.value;

/** An attempt that ends when the test says so. */
function start() {
  const attempt = held<Page[] | Failure>();
  const ended = breaker.run(attempt.call, "one");
  return {
    end: (outcome: Outcome) => {
      attempt.end(toPages(outcome));
      return ended;
    },
  };
}

describe("a closed circuit", () => {
  test("opens when more than half of at least five attempts fail", async () => {
    await run(...repeat("unavailable", 4));
    expect([breaker.isOpen(), await gauge()]).toEqual([false, 0]);
    await run("unavailable");
    expect([breaker.isOpen(), await gauge()]).toEqual([true, 1]);
  });

  test("stays closed while half of the attempts succeed", async () => {
    for (let round = 0; round < 15; round += 1) await run("ok", "timeout");
    expect(breaker.isOpen()).toBe(false);
  });

  test("forgets what is older than twenty attempts", async () => {
    await run(...repeat("ok", 50), ...repeat("timeout", 10));
    expect(breaker.isOpen()).toBe(false);
    await run("timeout");
    expect(breaker.isOpen()).toBe(true);
  });

  test("stays closed while the attempts of one organization alone fail, and those of others succeed", async () => {
    for (let round = 0; round < 15; round += 1) {
      await runOf("other", "ok");
      await runOf("one", ...repeat("timeout", 9));
    }
    expect(breaker.isOpen()).toBe(false);
    await runOf("other", "timeout");
    expect(breaker.isOpen()).toBe(true);
  });

  test("opens if the answers of others are older than twenty attempts", async () => {
    await runOf("other", ...repeat("ok", 20));
    await runOf("one", ...repeat("timeout", 19));
    expect(breaker.isOpen()).toBe(false);
    await runOf("one", "timeout");
    expect(breaker.isOpen()).toBe(true);
  });

  test.each<FailureKind>(["out_of_time", "busy", "hedge_cancelled", "dropped"])("does not count %s", async (kind) => {
    await run(...repeat(kind, 40), ...repeat("timeout", 4));
    expect(breaker.isOpen()).toBe(false);
    await run(...repeat(kind, 40), "timeout");
    expect(breaker.isOpen()).toBe(true);
  });

  test.each<FailureKind>(["query_refused", "request_refused"])(
    "counts %s as a success of the provider",
    async (kind) => {
      await run(...repeat(kind, 40), ...repeat("timeout", 10));
      expect(breaker.isOpen()).toBe(false);
    },
  );
});

describe("an open circuit", () => {
  beforeEach(openCircuit);

  test("still runs attempts, for failover without an alternative, but does not count them", async () => {
    await run(...repeat("ok", 30));
    expect(breaker.isOpen()).toBe(true);
  });

  test("stays open for ten seconds, and then lets one trial through", async () => {
    vi.advanceTimersByTime(openMs - 1);
    expect(breaker.isOpen()).toBe(true);
    vi.advanceTimersByTime(1);
    expect(breaker.isOpen()).toBe(false);
    expect(await gauge()).toBe(1);
  });

  test("closes after a trial that succeeds, although the clock of the machine was set back", async () => {
    vi.advanceTimersByTime(openMs);
    vi.setSystemTime(Date.now() - 3_600_000);
    await run("ok");
    expect(await gauge()).toBe(0);
  });
});

describe("a half-open circuit", () => {
  beforeEach(async () => {
    await openCircuit();
    vi.advanceTimersByTime(openMs);
  });

  test("is open for all searches but the trial, and closes when the trial succeeds", async () => {
    const trial = start();
    expect(breaker.isOpen()).toBe(true);
    await run("ok", "timeout");
    expect(breaker.isOpen()).toBe(true);
    await trial.end("ok");
    expect([breaker.isOpen(), await gauge()]).toEqual([false, 0]);
  });

  test("closes with an empty window: old failures do not count any more", async () => {
    await run("ok", ...repeat("timeout", 4));
    expect(breaker.isOpen()).toBe(false);
    await run("timeout");
    expect(breaker.isOpen()).toBe(true);
  });

  test("opens for another ten seconds when the trial fails", async () => {
    await run("timeout");
    expect([breaker.isOpen(), await gauge()]).toEqual([true, 1]);
    vi.advanceTimersByTime(openMs);
    expect(breaker.isOpen()).toBe(false);
    await run("ok");
    expect(await gauge()).toBe(0);
  });

  test.each<Outcome>(["out_of_time", "busy", "hedge_cancelled", "dropped"])(
    "lets the next search try at once when the trial ends as %s, as after a caller disconnected",
    async (kind) => {
      await run(kind);
      expect([breaker.isOpen(), await gauge()]).toEqual([false, 1]);
      await run("ok");
      expect([breaker.isOpen(), await gauge()]).toEqual([false, 0]);
    },
  );
});

test("attempts from before an outage do not open the circuit again once the provider works", async () => {
  const late = Array.from({ length: 6 }, start);
  await openCircuit();
  vi.advanceTimersByTime(openMs);
  await run("ok", "ok");
  for (const attempt of late) await attempt.end("timeout");
  expect(breaker.isOpen()).toBe(false);
});

test("an attempt from before the circuit opened does not decide the trial", async () => {
  const [early, failed, late] = [start(), start(), start()];
  await openCircuit();
  vi.advanceTimersByTime(openMs);
  const trial = start();
  await early.end("busy");
  await failed.end("timeout");
  await late.end("ok");
  expect(await gauge()).toBe(1);
  await trial.end("ok");
  expect(await gauge()).toBe(0);
});

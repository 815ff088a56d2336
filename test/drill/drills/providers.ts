import { setTimeout as sleep } from "node:timers/promises";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { delayed, hang, refusal, type Reply, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Drill } from "../drill.ts";
import type { DrillStack } from "../drill-stack.ts";

const down = refusal(500, "Internal server error");
const slowMs = 6_000;
// Longer than the scrape interval, so that Prometheus sees each state of the circuit.
const seenMs = 12_000;

/** Makes the provider answer like this. @returns a function that repairs it. */
async function answerWith({ provider }: DrillStack, answer: Reply): Promise<() => Promise<void>> {
  provider.otherwise = answer;
  return async () => {
    provider.otherwise = tenOrganic;
  };
}

/** Makes the provider fail until the circuits of all workers open, then work until they close, repeatedly. */
async function flap({ provider, service }: DrillStack): Promise<() => Promise<void>> {
  const over = new AbortController();
  const isEverywhere = (open: number) =>
    service.until(async () => {
      const seen = await Promise.all(service.workers.map((worker) => Exposition.of(worker)));
      return over.signal.aborted || seen.every((one) => one.value('provider_breaker_open{provider="serper"}') === open);
    });
  const flapping = (async () => {
    while (!over.signal.aborted) {
      provider.otherwise = provider.otherwise === down ? tenOrganic : down;
      await isEverywhere(provider.otherwise === down ? 1 : 0);
      await sleep(seenMs);
    }
  })();
  flapping.catch(() => undefined); // The stack may close before it has ended.
  return async () => {
    over.abort();
    await flapping;
    provider.otherwise = tenOrganic;
  };
}

export const providerDrills: readonly Drill[] = [
  {
    name: "providers-down",
    outage: "every provider answers with errors",
    isTotal: true,
    expects: ["AllProvidersFail", "SearchesFail"],
    begin: (stack) => answerWith(stack, down),
  },
  {
    name: "providers-down-longer",
    outage: "the same, for six minutes",
    expects: ["ProviderFails", "SearchesFailTooOften"],
    withinMs: 600_000,
    begin: (stack) => answerWith(stack, down),
  },
  {
    name: "providers-hang",
    outage: "no provider answers",
    isTotal: true,
    expects: ["AllProvidersFail", "SearchesFail"],
    begin: (stack) => answerWith(stack, hang),
  },
  {
    name: "provider-slow",
    outage: `the only provider takes ${slowMs / 1_000} s for a page, and searches need two, one after the other`,
    expects: ["SearchesSlow"],
    withinMs: 900_000,
    stack: { depth: 20 },
    begin: (stack) => answerWith(stack, delayed(slowMs)),
  },
  {
    name: "provider-down",
    outage: "one of two providers answers with errors",
    expects: ["ProviderPassedOver"],
    withinMs: 600_000,
    stack: { secondProvider: true },
    begin: (stack) => answerWith(stack, down),
  },
  {
    name: "provider-refuses-account",
    outage: "one of two providers refuses our key",
    expects: ["ProviderAccountRefused"],
    stack: { secondProvider: true },
    begin: (stack) => answerWith(stack, refusal(403, "Unauthorized.")),
  },
  {
    name: "breaker-flaps",
    outage: "one of two providers fails and works in turn",
    expects: ["BreakerFlaps"],
    stack: { secondProvider: true },
    begin: flap,
  },
];

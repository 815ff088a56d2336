import { caughtBy, inCode, type Mutant, testFile } from "./mutant.ts";

/** Bugs of the discovered limits: of simultaneous calls to a provider, and of a worker's searches. */
export const limitMutants: readonly Mutant[] = [
  ...caughtBy(testFile("test/worker/providers/policies/adaptive-limit.test.ts"), {
    "limit-never-falls": [
      "The limit of simultaneous calls stays although the provider refuses calls.",
      inCode("AdaptiveLimit.ended", "const fallen = Math.floor(this.#calls * fallTo);", "const fallen = this.#calls;"),
    ],
    "limit-falls-per-refusal": [
      "Each refusal of one burst lowers the limit of simultaneous calls again.",
      inCode("AdaptiveLimit.ended", "began.atMs <= this.#fellAtMs ||", ""),
    ],
    "limit-doubles-unanswered": [
      "While calls wait, the limit doubles every 50 ms, although the provider has not answered any.",
      inCode("AdaptiveLimit.#riseQuickly", "|| !isKnown", ""),
    ],
  }),
  ...caughtBy(testFile("test/worker/concurrency-controller.test.ts"), {
    "slots-rise-behind-the-limit": [
      "A worker takes more searches although its calls wait for a slot at the provider.",
      inCode("ConcurrencyController.#hasRoom", "callsWaiting === 0 &&", ""),
    ],
  }),
  ...caughtBy(testFile("test/journeys/slots.test.ts"), {
    "slots-rise-when-a-search-ends": [
      "A worker whose concurrency rises takes no further search until one of its searches ends.",
      inCode("JobLoop.setConcurrency", "this.#act();", ""),
    ],
  }),
];

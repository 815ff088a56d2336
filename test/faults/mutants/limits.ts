import { inCode, type Mutant, testFile } from "./mutant.ts";

/** Bugs of the discovered limits: of simultaneous calls to a provider, and of a worker's searches. */
export const limitMutants: readonly Mutant[] = [
  {
    name: "limit-never-falls",
    what: "The limit of simultaneous calls stays although the provider refuses calls.",
    caughtBy: testFile("test/worker/providers/policies/adaptive-limit.test.ts"),
    edits: [
      inCode("AdaptiveLimit.ended", "const fallen = Math.floor(this.#calls * fallTo);", "const fallen = this.#calls;"),
    ],
  },
  {
    name: "limit-falls-per-refusal",
    what: "Each refusal of one burst lowers the limit of simultaneous calls again.",
    caughtBy: testFile("test/worker/providers/policies/adaptive-limit.test.ts"),
    edits: [inCode("AdaptiveLimit.ended", "began.atMs <= this.#fellAtMs ||", "")],
  },
  {
    name: "limit-doubles-unanswered",
    what: "While calls wait, the limit doubles every 50 ms, although the provider has not answered any.",
    caughtBy: testFile("test/worker/providers/policies/adaptive-limit.test.ts"),
    edits: [inCode("AdaptiveLimit.#riseQuickly", "|| !isKnown", "")],
  },
  {
    name: "slots-rise-behind-the-limit",
    what: "A worker takes more searches although its calls wait for a slot at the provider.",
    caughtBy: testFile("test/worker/concurrency-controller.test.ts"),
    edits: [inCode("ConcurrencyController.#hasRoom", "callsWaiting === 0 &&", "")],
  },
  {
    name: "slots-rise-when-a-search-ends",
    what: "A worker whose concurrency rises takes no further search until one of its searches ends.",
    caughtBy: testFile("test/journeys/slots.test.ts"),
    edits: [inCode("JobLoop.setConcurrency", "this.#act();", "")],
  },
];

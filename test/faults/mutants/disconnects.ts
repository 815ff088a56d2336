import { caughtBy, inCode, inScript, type Mutant, testFile } from "./mutant.ts";

/** Bugs after a caller disconnects while a worker has its search. */
export const disconnectMutants: readonly Mutant[] = [
  ...caughtBy(testFile("test/journeys/disconnects.test.ts"), {
    "slot-dropped-at-disconnect": [
      "When a caller disconnects, its concurrency slot is free at once, although its calls still run.",
      inScript("settle.lua", "if ending == 'left' then freeMils(id) else drop(id, record) end", "drop(id, record)"),
    ],
  }),
  ...caughtBy(testFile("test/shared/credits/unpaid-calls.test.ts"), {
    "unpaid-calls-not-counted": [
      "Unpaid provider calls are not counted, so callers may leave any number unpaid.",
      inScript("unpaid-calls.lua", /redis\.call\('SET', level, [^\n]*/, ""),
    ],
    "unpaid-calls-counted-twice": [
      "Unpaid calls count again each time the end of their search is published.",
      inScript("unpaid-calls.lua", /== 0 then return 0 end\n/, "== 0 then return calls end\n"),
    ],
  }),
  ...caughtBy(testFile("test/worker/providers/policies/disconnected.test.ts"), {
    "next-page-after-disconnect": [
      "A search requests further pages although its caller has disconnected.",
      inCode("ProviderClient.#call", /if \(attempt\.disconnected\?\.aborted\) return [^;]*;/, ""),
    ],
    "sent-calls-aborted-at-disconnect": [
      "A failed page aborts the other pages that were sent, although the caller has disconnected and they may be billed.",
      inCode("ProviderClient.#fetchAll", "if (!attempt.disconnected?.aborted) cancelAttempt", "cancelAttempt"),
    ],
  }),
];

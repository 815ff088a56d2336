import { inCode, inScript, type Mutant, testFile } from "./mutant.ts";

/** Bugs after a caller disconnects while a worker has its search. */
export const disconnectMutants: readonly Mutant[] = [
  {
    name: "slot-dropped-at-disconnect",
    what: "When a caller disconnects, its concurrency slot is free at once, although its calls still run.",
    caughtBy: testFile("test/journeys/disconnects.test.ts"),
    edits: [
      inScript("settle.lua", "if ending == 'left' then freeMils(id) else drop(id, record) end", "drop(id, record)"),
    ],
  },
  {
    name: "unpaid-calls-not-counted",
    what: "Unpaid provider calls are not counted, so callers may leave any number unpaid.",
    caughtBy: testFile("test/shared/credits/unpaid-calls.test.ts"),
    edits: [inScript("unpaid-calls.lua", /redis\.call\('SET', level, [^\n]*/, "")],
  },
  {
    name: "unpaid-calls-counted-twice",
    what: "Unpaid calls count again each time the end of their search is published.",
    caughtBy: testFile("test/shared/credits/unpaid-calls.test.ts"),
    edits: [inScript("unpaid-calls.lua", /== 0 then return 0 end\n/, "== 0 then return calls end\n")],
  },
  {
    name: "next-page-after-disconnect",
    what: "A search requests further pages although its caller has disconnected.",
    caughtBy: testFile("test/worker/providers/policies/disconnected.test.ts"),
    edits: [inCode("ProviderClient.#call", /if \(attempt\.disconnected\?\.aborted\) return [^;]*;/, "")],
  },
  {
    name: "sent-calls-aborted-at-disconnect",
    what: "A failed page aborts the other pages that were sent, although the caller has disconnected and they may be billed.",
    caughtBy: testFile("test/worker/providers/policies/disconnected.test.ts"),
    edits: [inCode("ProviderClient.#fetchAll", "if (!attempt.disconnected?.aborted) cancelAttempt", "cancelAttempt")],
  },
];

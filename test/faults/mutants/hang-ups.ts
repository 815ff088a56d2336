import { faults, inCode, inScript, type Mutant, replace, testFile } from "./mutant.ts";

const moneyModel = faults("money", "--runs", "1500");

/** Defects of what follows when a caller hangs up while a worker has its search. */
export const hangUpMutants: readonly Mutant[] = [
  {
    name: "place-dropped-at-hang-up",
    what: "The place in flight of a search whose caller hung up is free at once, although its calls still run.",
    caughtBy: testFile("test/journeys/hang-ups.test.ts"),
    edits: [inScript("settle.lua", replace("if fate == 'left' then freeMils(id) else drop(id) end", "drop(id)"))],
  },
  {
    name: "unpaid-calls-not-counted",
    what: "Provider calls that callers leave unpaid are not counted, so they may leave any number of them.",
    caughtBy: testFile("test/shared/credits/unpaid-calls.test.ts"),
    edits: [inScript("unpaid-calls.lua", replace(/redis\.call\('SET', level, [^\n]*/, ""))],
  },
  {
    name: "unpaid-calls-counted-twice",
    what: "Unpaid calls count again each time the end of their search is published.",
    caughtBy: moneyModel,
    edits: [inScript("unpaid-calls.lua", replace(/== 0 then return 0 end\n/, "== 2 then return 0 end\n"))],
  },
  {
    name: "next-page-after-hang-up",
    what: "A search asks its further pages although its caller has hung up.",
    caughtBy: testFile("test/worker/providers/policies/abandoned.test.ts"),
    edits: [inCode("callForPage", replace(/if \(attempt\.abandoned\?\.aborted\) return [^;]*;/, ""))],
  },
  {
    name: "sent-calls-aborted-at-hang-up",
    what: "A failed page aborts the other pages that were sent, although the caller has hung up and they may be billed.",
    caughtBy: testFile("test/worker/providers/policies/abandoned.test.ts"),
    edits: [inCode("fetchPages", replace("if (!attempt.abandoned?.aborted) cancelAttempt", "cancelAttempt"))],
  },
];

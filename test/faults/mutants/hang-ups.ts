import { faults, inCode, inScript, type Mutant, replace, testFile } from "./mutant.ts";

const moneyModel = faults("money", "--runs", "1500");
const count = "redis.call('ZADD', abandoned, 'NX', nowMs, requestId)";

/** Defects of what follows when a caller hangs up while a worker has its search. */
export const hangUpMutants: readonly Mutant[] = [
  {
    name: "place-dropped-at-hang-up",
    what: "The place in flight of a search whose caller hung up is free at once, although its calls still run.",
    caughtBy: testFile("test/journeys/hang-ups.test.ts"),
    edits: [
      inScript("settle.lua", replace("if fate == 'abandoned_running' then freeMils(id) else drop(id) end", "drop(id)")),
    ],
  },
  {
    name: "abandoned-not-counted",
    what: "Searches that callers abandon are not counted, so they may abandon any number of them.",
    caughtBy: moneyModel,
    edits: [inScript("abandoned.lua", replace(count, ""))],
  },
  {
    name: "abandoned-counted-twice",
    what: "A search counts as abandoned again each time its end is published.",
    caughtBy: moneyModel,
    edits: [
      inScript(
        "abandoned.lua",
        replace(count, "redis.call('ZADD', abandoned, nowMs, requestId .. redis.call('ZCARD', abandoned))"),
      ),
    ],
  },
  {
    name: "next-page-after-hang-up",
    what: "A search asks its further pages although its caller has hung up.",
    caughtBy: testFile("test/shared/providers/policies/abandoned.test.ts"),
    edits: [inCode("callForPage", replace(/if \(attempt\.abandoned\?\.aborted\) return [^;]*;/, ""))],
  },
  {
    name: "sent-calls-aborted-at-hang-up",
    what: "A failed page aborts the other pages that were sent, although the caller has hung up and they may be billed.",
    caughtBy: testFile("test/shared/providers/policies/abandoned.test.ts"),
    edits: [inCode("fetchPages", replace("if (!attempt.abandoned?.aborted) cancelAttempt", "cancelAttempt"))],
  },
];

import { caughtBy, faults, inCode, inScript, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

const randomFaults = (searches: string, ...only: readonly string[]) =>
  faults("random", "--seed", "1", "--seeds", "3", "--searches", searches, ...only);

/** Bugs of the worker's run, of the decision in Postgres, and of its publication in Redis. */
export const settlingMutants: readonly Mutant[] = [
  ...caughtBy(randomFaults("400", "--only", "Postgres silent for a worker"), {
    "answered-before-settled": [
      "The worker sends the answer before Postgres has decided who pays.",
      inCode(
        "runSearchJob",
        "try {",
        `if (ending.ok)
             void sendReply((context as unknown as Context).redis, { inbox: job.inbox, requestId: job.requestId, outcome: { kind: "answer", requestId: job.requestId, body: ending.body, chargedMils: job.priceMils }, trace });
           try {`,
        ["sendReply"],
      ),
    ],
  }),
  ...caughtBy(testFile("test/journeys/idempotency.test.ts"), {
    "charged-before-engine-answers": [
      "The worker charges a search even if the engine fails, and does not report that the charge stands.",
      inCode("settlementRequest", "if (ending.ok) return", "if (ending.ok || requestId !== '') return"),
      inCode("settlementRequest", "priceMils: ending.priceMils", "priceMils: job.priceMils"),
      inCode("conclude", "charged: isCharged(decision)", "charged: false"),
    ],
  }),
  ...caughtBy(randomFaults("400", "--only", "Postgres killed"), {
    "commits-not-durable": [
      "Postgres acknowledges commits that are not on disk yet.",
      inCode(
        "openDatabase",
        "await warnOfMore(",
        'await client.query("set synchronous_commit = off"); await warnOfMore(',
      ),
    ],
  }),
  ...caughtBy(moneyModel, {
    "guard-off-by-one": [
      "The last guard in Postgres lets a balance fall one price below zero.",
      inSql("ledger_entries", "balance_after_mils between 0 and", "balance_after_mils between -5 and"),
      inSql(
        "decide_searches",
        "b.organization_sum > b.balance_mils then",
        "b.organization_sum > b.balance_mils + 5 then",
      ),
    ],
    "index-entry-left": [
      "A hold that ends stays in the index of open holds.",
      inScript("settle.lua", "redis.call('ZREM', index, indexEntry(holds, id, keyHash))", ""),
    ],
    "key-freed-by-another-request": [
      "A failed search frees its Idempotency-Key although another request owns the key.",
      inScript("settle.lua", "if redis.call('HGET', record, 'request') ~= id then return end", ""),
    ],
    "lock-and-decision-in-one-snapshot": [
      "Settlement does not lock the organization first, so two batches decide on the same balance.",
      inSql("decide_searches", /perform 1 from organizations o [^;]*;/, ""),
      inSql("charge_alone", "for no key update", ""),
    ],
    "older-balance-stored": [
      "A late, older balance replaces a newer one in Redis.",
      inScript("settle.lua", "tonumber(ARGV[2]) > version", "tonumber(ARGV[2]) ~= version"),
    ],
    "seeded-by-increment": [
      "A balance from Postgres is added to the copy in Redis instead of replacing it.",
      inScript(
        "settle.lua",
        "redis.call('HSET', balance, 'balance', ARGV[1], ",
        "redis.call('HINCRBY', balance, 'balance', ARGV[1]) redis.call('HSET', balance, ",
      ),
    ],
    "settled-twice": [
      "Settlement ignores that a search is already charged, and no index forbids a second charge.",
      inSql("one_charge_per_request", "create unique index", "create index"),
      inSql("decide_searches", "l.request_id = a.request_id and l.kind = 'charge'", "false"),
      inSql("charge_alone", /or exists \(select from ledger_entries [^)]*\)/, ""),
    ],
  }),
  ...caughtBy(randomFaults("300", "--only", "settling of unknown outcome in a worker"), {
    "unknown-commit-refunded-blindly": [
      "A settlement of unknown outcome is compensated with a grant, as if it had been charged.",
      inCode(
        "DecidedBatches.#decideAll",
        "open = rejectExpired(open, error);",
        `for (const { request: { organizationId, ...wish } } of open)
             if (wish.wanted === "charge")
               void grantCredit(this.#parts.database, { organizationId, grantId: newId("grant"), mils: wish.priceMils, reason: "refund" }).catch(() => undefined);
           open = rejectExpired(open, error);`,
        ["grantCredit", "newId"],
      ),
    ],
  }),
  ...caughtBy(testFile("test/journeys/second-run.test.ts"), {
    "reversed-by-second-run": [
      "A second run of a job reverses the charge of the first, although the caller may have the answer.",
      inCode(
        "runSearchJob",
        'ifCharged: "end_hold" }, retryForMs);',
        `ifCharged: "end_hold" }, retryForMs);
           if (decision.kind === "charge" && outcome.kind === "failure" && !job.key)
             await reverseCharges((context as unknown as Context).database, [job], "engine_timeout");`,
        ["reverseCharges"],
      ),
    ],
  }),
  ...caughtBy(testFile("test/shared/credits/settlement.test.ts"), {
    "whole-batch-published-again": [
      "If Redis refuses the decision of one organization, the decisions and replies of all others are repeated.",
      inCode(
        "Settlement.#publish",
        "failures.get(published.search) ?? {};",
        `failures.size > 0 ? { error: new Error("one failed"), isReplied: false } : {};`,
      ),
    ],
  }),
];

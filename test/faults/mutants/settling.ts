import { faults, inCode, inScript, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

const randomFaults = (searches: string, ...only: readonly string[]) =>
  faults("random", "--seed", "1", "--seeds", "3", "--searches", searches, ...only);

/** Bugs of the worker's run, of the decision in Postgres, and of its publication in Redis. */
export const settlingMutants: readonly Mutant[] = [
  {
    name: "answered-before-settled",
    what: "The worker sends the answer before Postgres has decided who pays.",
    caughtBy: randomFaults("400", "--only", "Postgres silent for a worker"),
    edits: [
      inCode(
        "runSearchJob",
        "try {",
        `if (ending.ok)
             void sendReply((context as unknown as Context).redis, { inbox: job.inbox, requestId: job.requestId, outcome: { kind: "answer", requestId: job.requestId, body: ending.body, chargedMils: job.priceMils }, trace });
           try {`,
        ["sendReply"],
      ),
    ],
  },
  {
    name: "charged-before-engine-answers",
    what: "The worker charges a search even if the engine fails, and does not report that the charge stands.",
    caughtBy: testFile("test/journeys/idempotency.test.ts"),
    edits: [
      inCode("settlementRequest", "if (ending.ok) return", "if (ending.ok || requestId !== '') return"),
      inCode("settlementRequest", "priceMils: ending.priceMils", "priceMils: job.priceMils"),
      inCode("conclude", "charged: isCharged(decision)", "charged: false"),
    ],
  },
  {
    name: "commits-not-durable",
    what: "Postgres acknowledges commits that are not on disk yet.",
    caughtBy: randomFaults("400", "--only", "Postgres killed"),
    edits: [
      inCode(
        "openDatabase",
        "await warnOfMore(",
        'await client.query("set synchronous_commit = off"); await warnOfMore(',
      ),
    ],
  },
  {
    name: "guard-off-by-one",
    what: "The last guard in Postgres lets a balance fall one price below zero.",
    caughtBy: moneyModel,
    edits: [
      inSql("ledger_entries", "balance_after_mils between 0 and", "balance_after_mils between -5 and"),
      inSql(
        "decide_searches",
        "b.organization_sum > b.balance_mils then",
        "b.organization_sum > b.balance_mils + 5 then",
      ),
    ],
  },
  {
    name: "index-entry-left",
    what: "A hold that ends stays in the index of open holds.",
    caughtBy: moneyModel,
    edits: [inScript("settle.lua", "redis.call('ZREM', index, indexEntry(holds, id, keyHash))", "")],
  },
  {
    name: "key-freed-by-another-request",
    what: "A failed search frees its Idempotency-Key although another request owns the key.",
    caughtBy: moneyModel,
    edits: [inScript("settle.lua", "if redis.call('HGET', record, 'request') ~= id then return end", "")],
  },
  {
    name: "lock-and-decision-in-one-snapshot",
    what: "Settlement does not lock the organization first, so two batches decide on the same balance.",
    caughtBy: moneyModel,
    edits: [
      inSql("decide_searches", /perform 1 from organizations o [^;]*;/, ""),
      inSql("charge_alone", "for no key update", ""),
    ],
  },
  {
    name: "older-balance-stored",
    what: "A late, older balance replaces a newer one in Redis.",
    caughtBy: moneyModel,
    edits: [inScript("settle.lua", "tonumber(ARGV[2]) > version", "tonumber(ARGV[2]) ~= version")],
  },
  {
    name: "seeded-by-increment",
    what: "A balance from Postgres is added to the copy in Redis instead of replacing it.",
    caughtBy: moneyModel,
    edits: [
      inScript(
        "settle.lua",
        "redis.call('HSET', balance, 'balance', ARGV[1], ",
        "redis.call('HINCRBY', balance, 'balance', ARGV[1]) redis.call('HSET', balance, ",
      ),
    ],
  },
  {
    name: "settled-twice",
    what: "Settlement ignores that a search is already charged, and no index forbids a second charge.",
    caughtBy: moneyModel,
    edits: [
      inSql("one_charge_per_request", "create unique index", "create index"),
      inSql("decide_searches", "l.request_id = a.request_id and l.kind = 'charge'", "false"),
      inSql("charge_alone", /or exists \(select from ledger_entries [^)]*\)/, ""),
    ],
  },
  {
    name: "unknown-commit-refunded-blindly",
    what: "A settlement of unknown outcome is compensated with a grant, as if it had been charged.",
    caughtBy: randomFaults("300", "--only", "settling of unknown outcome in a worker"),
    edits: [
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
  },
  {
    name: "reversed-by-second-run",
    what: "A second run of a job reverses the charge of the first, although the caller may have the answer.",
    caughtBy: testFile("test/journeys/second-run.test.ts"),
    edits: [
      inCode(
        "runSearchJob",
        'ifCharged: "end_hold" }, retryForMs);',
        `ifCharged: "end_hold" }, retryForMs);
           if (decision.kind === "charge" && outcome.kind === "failure" && !job.key)
             await reverseCharges((context as unknown as Context).database, [job], "engine_timeout");`,
        ["reverseCharges"],
      ),
    ],
  },
  {
    name: "whole-batch-published-again",
    what: "If Redis refuses the decision of one organization, the decisions and replies of all others are repeated.",
    caughtBy: testFile("test/shared/credits/settlement.test.ts"),
    edits: [
      inCode(
        "Settlement.#publish",
        "failures.get(published.search) ?? {};",
        `failures.size > 0 ? { error: new Error("one failed"), isReplied: false } : {};`,
      ),
    ],
  },
];

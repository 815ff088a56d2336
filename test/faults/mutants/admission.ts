import { faults, inCode, inScript, moneyModel, type Mutant, testFile } from "./mutant.ts";

/** Bugs of admission in Redis, and of the API when admission refuses a search. */
export const admissionMutants: readonly Mutant[] = [
  {
    name: "gate-ignores-holds",
    what: "Admission compares the price with the balance and ignores the open holds.",
    caughtBy: moneyModel,
    edits: [inScript("admit.lua", "local available = tonumber(copy[1]) - held", "local available = tonumber(copy[1])")],
  },
  {
    name: "hold-left-by-rate-limit",
    what: "A search that the rate window refuses leaves its hold behind.",
    caughtBy: moneyModel,
    edits: [
      inScript(
        "admit.lua",
        "if unpaidMs > 0 then return {'unpaid_calls', used, leftMs, unpaidMs} end if used >= limit then return {'limited', used, leftMs} end",
        `if used >= limit then
             redis.call('HSETNX', holds, id, price .. ':' .. nowMs .. ':' .. ARGV[10])
             redis.call('HINCRBY', holds, 'held', price)
             return {'limited', used, leftMs}
           end`,
      ),
    ],
  },
  {
    name: "hold-not-indexed",
    what: "Admission places a hold without an index entry, so the sweeper does not find it.",
    caughtBy: moneyModel,
    edits: [inScript("admit.lua", "redis.call('ZADD', index, deadline, indexEntry(holds, id, ARGV[10]))", "")],
  },
  {
    name: "holds-expire-too-soon",
    what: "Holds expire before their searches end.",
    caughtBy: moneyModel,
    edits: [
      inScript(
        "admit.lua",
        "redis.call('HINCRBY', holds, 'held', price)",
        "redis.call('HINCRBY', holds, 'held', price) redis.call('PEXPIRE', holds, 5)",
      ),
    ],
  },
  {
    name: "key-recorded-after-success",
    what: "An Idempotency-Key is recorded only with its answer, so earlier repeats search again.",
    caughtBy: faults("scenarios", "one-key"),
    edits: [
      inScript("admit.lua", "if fingerprint ~= '' then if first[1]", "if fingerprint == 'recorded' then if first[1]"),
    ],
  },
  {
    name: "keys-shared-by-organizations",
    what: "The record of an Idempotency-Key is shared by all organizations.",
    caughtBy: testFile("test/journeys/idempotency.test.ts"),
    // biome-ignore lint: the template's placeholders are the anchor
    edits: [inCode("keysOf", "`{${organizationId}}:key:", "`{keys}:key:")],
  },
  {
    name: "page-too-many",
    what: "A price per page counts one page too many if the depth fills its pages.",
    caughtBy: testFile("test/journeys/idempotency.test.ts"),
    edits: [inCode("searchPriceMils", "pagesOf(depth)", "pagesOf(depth + 1)")],
  },
  {
    name: "deeper-than-the-plan",
    what: "A plan allows one result more than its largest depth.",
    caughtBy: testFile("test/api/check-order.test.ts"),
    edits: [inCode("requirePlan", "query.depth > maxDepth", "query.depth > maxDepth + 1")],
  },
  {
    name: "refused-without-postgres",
    what: "A search is refused for lack of credit by the balance in Redis, without a query to Postgres.",
    caughtBy: testFile("test/journeys/lost-memory.test.ts"),
    edits: [inCode("showsMore", "return credit.balance.version > version", "return credit.balance.version < 0")],
  },
  {
    name: "decided-holds-still-count",
    what: "A search is refused because of a hold whose charge is already in the balance.",
    caughtBy: testFile("test/journeys/crossed-balances.test.ts"),
    edits: [inCode("showsMore", "if (credit.decided.length > 0) return true;", "")],
  },
  {
    name: "refunded-without-hold",
    what: "An admission of unknown outcome is refunded whether or not it placed a hold, so refusals fill the ledger.",
    caughtBy: testFile("test/journeys/unknown-admissions.test.ts"),
    edits: [inCode("Refunds.#refundHeld", "if (held.has(request.requestId))", "")],
  },
];

import { caughtBy, faults, inCode, inScript, moneyModel, type Mutant, testFile } from "./mutant.ts";

/** Bugs of admission in Redis, and of the API when admission refuses a search. */
export const admissionMutants: readonly Mutant[] = [
  ...caughtBy(moneyModel, {
    "gate-ignores-holds": [
      "Admission compares the price with the balance and ignores the open holds.",
      inScript("admit.lua", "local available = tonumber(copy[1]) - held", "local available = tonumber(copy[1])"),
    ],
    "hold-left-by-rate-limit": [
      "A search that the rate window refuses leaves its hold behind.",
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
    "hold-not-indexed": [
      "Admission places a hold without an index entry, so the sweeper does not find it.",
      inScript("admit.lua", "redis.call('ZADD', index, deadline, indexEntry(holds, id, ARGV[10]))", ""),
    ],
    "holds-expire-too-soon": [
      "Holds expire before their searches end.",
      inScript(
        "admit.lua",
        "redis.call('HINCRBY', holds, 'held', price)",
        "redis.call('HINCRBY', holds, 'held', price) redis.call('PEXPIRE', holds, 5)",
      ),
    ],
  }),
  ...caughtBy(faults("scenarios", "one-key"), {
    "key-recorded-after-success": [
      "An Idempotency-Key is recorded only with its answer, so earlier repeats search again.",
      inScript("admit.lua", "if fingerprint ~= '' then if first[1]", "if fingerprint == 'recorded' then if first[1]"),
    ],
  }),
  ...caughtBy(testFile("test/journeys/idempotency.test.ts"), {
    "keys-shared-by-organizations": [
      "The record of an Idempotency-Key is shared by all organizations.",
      // biome-ignore lint: the template's placeholders are the anchor
      inCode("keysOf", "`{${organizationId}}:key:", "`{keys}:key:"),
    ],
    "page-too-many": [
      "A price per page counts one page too many if the depth fills its pages.",
      inCode("searchPriceMils", "pagesOf(depth)", "pagesOf(depth + 1)"),
    ],
  }),
  ...caughtBy(testFile("test/api/check-order.test.ts"), {
    "deeper-than-the-plan": [
      "A plan allows one result more than its largest depth.",
      inCode("requirePlan", "query.depth > maxDepth", "query.depth > maxDepth + 1"),
    ],
  }),
  ...caughtBy(testFile("test/journeys/lost-memory.test.ts"), {
    "refused-without-postgres": [
      "A search is refused for lack of credit by the balance in Redis, without a query to Postgres.",
      inCode("showsMore", "return credit.balance.version > version", "return credit.balance.version < 0"),
    ],
  }),
  ...caughtBy(testFile("test/journeys/crossed-balances.test.ts"), {
    "decided-holds-still-count": [
      "A search is refused because of a hold whose charge is already in the balance.",
      inCode("showsMore", "if (credit.decided.length > 0) return true;", ""),
    ],
  }),
  ...caughtBy(testFile("test/journeys/unknown-admissions.test.ts"), {
    "refunded-without-hold": [
      "An admission of unknown outcome is refunded whether or not it placed a hold, so refusals fill the ledger.",
      inCode("Refunds.#refundHeld", "if (held.has(request.requestId))", ""),
    ],
  }),
];

import { caughtBy, inScript, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

const journey = testFile("test/journeys/limits.test.ts");
const ledger = testFile("test/shared/credits/limits.test.ts");

/** Bugs of spending limits. */
export const spendingLimitMutants: readonly Mutant[] = [
  ...caughtBy(journey, {
    "spending-limit-off-by-one": [
      "A search that reaches its limit exactly is refused.",
      inScript("limits.lua", "dayMils + mils > tonumber(dayLimit)", "dayMils + mils >= tonumber(dayLimit)"),
    ],
    "token-hold-left": [
      "A search that has ended still counts as held against the limit of its token.",
      inScript("token-hold.lua", "redis.call('HDEL', tokens, id)", "if id then return end"),
    ],
  }),
  ...caughtBy(moneyModel, {
    "spending-limit-ignores-holds": [
      "Searches in flight do not count against a limit until they are charged.",
      inScript(
        "admit.lua",
        "limitReached(dayMils, monthMils, held + price,",
        "limitReached(dayMils, monthMils, price,",
      ),
    ],
    "spending-not-seeded": [
      "If Redis does not know what was spent, it counts from 0 instead of asking Postgres.",
      inScript(
        "admit.lua",
        "if version ~= copy[2] then return {'balance_missing', used, leftMs, copy[2]} end",
        "if version ~= copy[2] then dayMils, monthMils = 0, 0 end",
      ),
    ],
    "token-hold-freed-uncounted": [
      "A credit check of one token frees the holds of another before Redis knows what that one spent.",
      inScript("free-decided.lua", "if token and isCounted(token) then", "if token then"),
    ],
  }),
  ...caughtBy(ledger, {
    "spending-limit-unguarded": [
      "Postgres charges whatever Redis admitted, even beyond a limit.",
      inSql("decide_searches", "when b.organization_sum > b.day_left_mils then 'daily_limit'", ""),
    ],
    "credit-counts-as-spending": [
      "Credit that is added makes room under a limit.",
      inSql("change_credit", "day_began_with_mils = o.day_began_with_mils + mils,", ""),
    ],
    "spending-of-yesterday-counts": [
      "A new day still counts what was spent on the day before.",
      inSql(
        "organization_spending",
        "when o.spending_day = d.day then o.day_began_with_mils",
        "when true then o.day_began_with_mils",
      ),
    ],
  }),
];

import { inScript, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

const journey = testFile("test/journeys/limits.test.ts");
const ledger = testFile("test/shared/credits/limits.test.ts");

/** Bugs of spending limits. */
export const spendingLimitMutants: readonly Mutant[] = [
  {
    name: "spending-limit-off-by-one",
    what: "A search that reaches its limit exactly is refused.",
    caughtBy: journey,
    edits: [inScript("limits.lua", "dayMils + mils > tonumber(dayLimit)", "dayMils + mils >= tonumber(dayLimit)")],
  },
  {
    name: "spending-limit-ignores-holds",
    what: "Searches in flight do not count against a limit until they are charged.",
    caughtBy: moneyModel,
    edits: [
      inScript(
        "admit.lua",
        "limitReached(dayMils, monthMils, held + price,",
        "limitReached(dayMils, monthMils, price,",
      ),
    ],
  },
  {
    name: "spending-not-seeded",
    what: "If Redis does not know what was spent, it counts from 0 instead of asking Postgres.",
    caughtBy: moneyModel,
    edits: [
      inScript(
        "admit.lua",
        "if version ~= copy[2] then return {'balance_missing', used, leftMs, copy[2]} end",
        "if version ~= copy[2] then dayMils, monthMils = 0, 0 end",
      ),
    ],
  },
  {
    name: "token-hold-left",
    what: "A search that has ended still counts as held against the limit of its token.",
    caughtBy: journey,
    edits: [inScript("token-hold.lua", "redis.call('HDEL', tokens, id)", "if id then return end")],
  },
  {
    name: "token-hold-freed-uncounted",
    what: "A credit check of one token frees the holds of another before Redis knows what that one spent.",
    caughtBy: moneyModel,
    edits: [inScript("free-decided.lua", "if token and isCounted(token) then", "if token then")],
  },
  {
    name: "spending-limit-unguarded",
    what: "Postgres charges whatever Redis admitted, even beyond a limit.",
    caughtBy: ledger,
    edits: [inSql("decide_searches", "when b.organization_sum > b.day_left_mils then 'daily_limit'", "")],
  },
  {
    name: "credit-counts-as-spending",
    what: "Credit that is added makes room under a limit.",
    caughtBy: ledger,
    edits: [inSql("change_credit", "day_began_with_mils = o.day_began_with_mils + mils,", "")],
  },
  {
    name: "spending-of-yesterday-counts",
    what: "A new day still counts what was spent on the day before.",
    caughtBy: ledger,
    edits: [
      inSql(
        "organization_spending",
        "when o.spending_day = d.day then o.day_began_with_mils",
        "when true then o.day_began_with_mils",
      ),
    ],
  },
];

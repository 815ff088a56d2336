import { caughtBy, inCode, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

/** Bugs of corrections by an operator. */
export const correctionMutants: readonly Mutant[] = [
  ...caughtBy(moneyModel, {
    "correction-repeated": [
      "A grant or a correction counts as often as it is sent, and no index forbids it.",
      inSql("one_entry_per_grant", "create unique index", "create index"),
      inSql("change_credit", /and not exists \([^)]*\)/, ""),
    ],
  }),
  ...caughtBy(testFile("test/shared/credits/ledger.test.ts"), {
    "correction-unlocked": [
      "A grant or a correction does not lock the organization first, so it may be decided on an old balance.",
      inSql("change_credit", /perform 1 from organizations o [^;]*;/, ""),
    ],
  }),
  ...caughtBy(testFile("test/shared/credits/limits.test.ts"), {
    "correction-is-spending": [
      "A correction that takes credit away counts against the limits.",
      inSql("change_credit", "o.day_began_with_mils + mils,", "o.day_began_with_mils + greatest(mils, 0),"),
    ],
  }),
  ...caughtBy(testFile("test/commands/finding.test.ts"), {
    "correction-not-announced": [
      "Redis keeps the old balance after a correction until the reconciler compares it.",
      inCode("changeBalance", "await announceBalance(", 'if (kind !== "correction") await announceBalance('),
    ],
  }),
];

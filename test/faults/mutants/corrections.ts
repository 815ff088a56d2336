import { inCode, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

/** Bugs of corrections by an operator. */
export const correctionMutants: readonly Mutant[] = [
  {
    name: "correction-repeated",
    what: "A grant or a correction counts as often as it is sent, and no index forbids it.",
    caughtBy: moneyModel,
    edits: [
      inSql("one_entry_per_grant", "create unique index", "create index"),
      inSql("change_credit", /and not exists \([^)]*\)/, ""),
    ],
  },
  {
    name: "correction-unlocked",
    what: "A grant or a correction does not lock the organization first, so it may be decided on an old balance.",
    caughtBy: testFile("test/shared/credits/ledger.test.ts"),
    edits: [inSql("change_credit", /perform 1 from organizations o [^;]*;/, "")],
  },
  {
    name: "correction-is-spending",
    what: "A correction that takes credit away counts against the limits.",
    caughtBy: testFile("test/shared/credits/limits.test.ts"),
    edits: [inSql("change_credit", "o.day_began_with_mils + mils,", "o.day_began_with_mils + greatest(mils, 0),")],
  },
  {
    name: "correction-not-announced",
    what: "Redis keeps the old balance after a correction until the reconciler compares it.",
    caughtBy: testFile("test/commands/finding.test.ts"),
    edits: [inCode("changeBalance", "await announceBalance(", 'if (kind !== "correction") await announceBalance(')],
  },
];

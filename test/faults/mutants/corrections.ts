import { inCode, inSql, moneyModel, type Mutant, replace, testFile } from "./mutant.ts";

/** Bugs of corrections by an operator. */
export const correctionMutants: readonly Mutant[] = [
  {
    name: "correction-repeated",
    what: "A correction counts as often as it is sent, and no index forbids it.",
    caughtBy: moneyModel,
    edits: [
      inSql("one_entry_per_correction", replace("create unique index", "create index")),
      inSql("correct_credit", replace(/and not exists \([^)]*\)/, "")),
    ],
  },
  {
    name: "correction-unlocked",
    what: "A correction does not lock the organization first, so it may be decided on an old balance.",
    caughtBy: testFile("test/commands/credit.test.ts"),
    edits: [inSql("correct_credit", replace(/perform 1 from organizations o [^;]*;/, ""))],
  },
  {
    name: "correction-is-spending",
    what: "A correction that takes credit away counts against the limits, and one that adds credit makes room.",
    caughtBy: testFile("test/commands/credit.test.ts"),
    edits: [inSql("correct_credit", replace("day_began_with_mils = o.day_began_with_mils + mils,", ""))],
  },
  {
    name: "correction-not-announced",
    what: "Redis keeps the old balance after a correction until the reconciler compares it.",
    caughtBy: testFile("test/commands/finding.test.ts"),
    edits: [
      inCode("changeBalance", replace("await announceBalance(", 'if (kind !== "correction") await announceBalance(')),
    ],
  },
];

import { describe, expect, test } from "vitest";
import { auditCorrections, correctedMilsOf, type CorrectionEntry, type SentCorrection } from "./corrections.ts";

const entry: CorrectionEntry = { organizationId: "org_1", correctionId: "c1", mils: -20 };
const made: SentCorrection = { ...entry, made: 1, isMade: true };
const refused: SentCorrection = { ...entry, correctionId: "c2", made: 0, isMade: false };

test("a correction that was made once and one that was refused break no promise, even if a reply was lost", () => {
  expect(auditCorrections([made, refused], [entry])).toEqual([]);
  expect(auditCorrections([{ ...made, made: 0 }], [entry])).toEqual([]);
  expect(correctedMilsOf([made, refused, { ...made, mils: 5 }, { ...made, organizationId: "org_2" }], "org_1")).toBe(
    -15,
  );
});

describe("the auditor reports", () => {
  test.each<[string, SentCorrection[], CorrectionEntry[], RegExp]>([
    ["a correction that was made twice", [{ ...made, made: 2 }], [entry], /was made 2 times/],
    ["two entries of one correction", [made], [entry, entry], /accepted, and the ledger has 2 entries/],
    ["a correction without an entry", [made], [], /accepted, and the ledger has 0 entries/],
    [
      "an entry of a correction that was refused",
      [{ ...made, isMade: false }],
      [entry],
      /refused, and the ledger has 1/,
    ],
    ["another amount", [made], [{ ...entry, mils: -40 }], /another organization or amount/],
    ["an entry of another organization", [made], [{ ...entry, organizationId: "org_2" }], /another organization or/],
    ["an entry of a correction that no operator sent", [], [entry], /no operator sent it/],
  ])("%s", (_title, sent, entries, sentence) => {
    expect(auditCorrections(sent, entries).join("\n")).toMatch(sentence);
  });
});

import { expect, test } from "vitest";
import type { DayFigures } from "../../../shared/credits/ledger-days.ts";
import { outlookOf } from "../../../shared/credits/outlook.ts";

const now = new Date("2026-11-22T18:40:00Z");

const day = (charges: number, { mils = 5, reversals = 0 } = {}): DayFigures => ({
  day: "2026-11-22",
  charges,
  refunds: 0,
  reversals,
  chargedMils: charges * mils,
  reversedMils: reversals * mils,
  grantedMils: 0,
  correctedMils: 0,
});

const daysOf = (...charges: number[]) => charges.map((each) => day(each));

test("credit ends on a date at the pace of the week, less what was credited back, if the last day was no busier", () => {
  // 95 mils a day, 5 mils a search.
  const week = Array.from({ length: 7 }, () => day(20, { reversals: 1 }));
  const pace = { searches: 19, mils: 95 };
  expect(outlookOf(week, 9_500, now)).toEqual({
    day: pace,
    week: pace,
    endsOn: "2027-03-02",
    searches: 1_900,
    spikeOver: undefined,
  });
  expect(outlookOf(week, 94, now)).toMatchObject({ endsOn: "2026-11-23", searches: 18 });
  expect(outlookOf(week, 0, now)).toMatchObject({ endsOn: "2026-11-22", searches: 0 });
  expect(outlookOf(week, 1_000_000, now)).toMatchObject({ endsOn: null });
});

test("a day that is busier than the week brings the date nearer, and is a spike from three times the usual day", () => {
  const busy = outlookOf(daysOf(16, 16, 16, 16, 16, 16, 226), 11_300, now);
  expect(busy).toMatchObject({ day: { searches: 226, mils: 1_130 }, endsOn: "2026-12-02", spikeOver: 16 });
  expect(busy?.week.searches).toBeCloseTo(46);
  expect(outlookOf(daysOf(16, 16, 16, 16, 16, 16, 47), 11_300, now)?.spikeOver).toBeUndefined();
  // Nothing is usual yet, or the searches are too few to matter.
  expect(outlookOf(daysOf(0, 0, 0, 0, 9, 9, 500), 11_300, now)?.spikeOver).toBeUndefined();
  expect(outlookOf(daysOf(1, 1, 1, 1, 1, 1, 19), 11_300, now)?.spikeOver).toBeUndefined();
});

test("days of rest count, and days before the first search do not", () => {
  const week = daysOf(0, 0, 10, 0, 10, 5, 0);
  expect(outlookOf(week, 2_500, now)).toMatchObject({ week: { searches: 5, mils: 25 }, endsOn: "2027-03-02" });
});

test("without a search that stayed charged nothing is promised", () => {
  expect(outlookOf(daysOf(0, 0, 0, 0, 0, 0, 0), 1_000, now)).toBeUndefined();
  expect(outlookOf([day(3, { reversals: 3 })], 1_000, now)).toBeUndefined();
});

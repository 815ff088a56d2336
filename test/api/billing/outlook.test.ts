import { expect, test } from "vitest";
import { outlookOf } from "../../../api/billing/overview/overview.ts";
import type { DayFigures } from "../../../api/ledger/days.ts";

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

test("the pace is that of the seven days before today, less what was credited back", () => {
  // 700 mils in a week, 7 searches of them credited back: 95 mils a day, 5 mils a search.
  const week = [...Array.from({ length: 7 }, () => day(20, { reversals: 1 })), day(1_000)];
  expect(outlookOf(week, 9_500)).toEqual({ days: 100, searches: 1_900 });
  expect(outlookOf(week, 94)).toEqual({ days: 0, searches: 18 });
  expect(outlookOf(week, 0)).toEqual({ days: 0, searches: 0 });
});

test("days of rest count, and days before the first search do not", () => {
  const week = [day(0), day(0), day(10), day(0), day(10), day(10), day(0), day(0)];
  expect(outlookOf(week, 3_000)).toEqual({ days: 100, searches: 600 });
});

test("with fewer than three days of searches nothing is promised", () => {
  expect(outlookOf([day(0), day(0), day(0), day(0), day(0), day(9), day(9), day(9)], 1_000)).toBeUndefined();
  const allBack = day(3, { reversals: 3 });
  expect(
    outlookOf(
      Array.from({ length: 8 }, () => allBack),
      1_000,
    ),
  ).toBeUndefined();
});

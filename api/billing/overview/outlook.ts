import type { DayFigures } from "../../../shared/credits/days.ts";

/** Days with a charge, of the seven before today, from which there is a pace. */
const busyDaysMin = 3;

/** How long credit lasts. */
export interface Outlook {
  days: number;
  searches: number;
}

/**
 * How long the available mils last at the pace of the seven full days before today, by the organization's ledger: days = available
 * mils ÷ (mils charged − mils credited back, a day), searches = available mils ÷ (the same mils, a charged search that stayed).
 * Both are rounded down. Grants do not count, and neither does today, which is not over. A day without searches counts, so a
 * program that rests on Sundays is not taken for a faster one; days before the first charge of the week do not.
 * @param week eight days, the last one today.
 * @returns undefined with fewer than three days with a charge, or if nothing stayed charged.
 */
export function outlookOf(week: readonly DayFigures[], availableMils: number): Outlook | undefined {
  const before = week.slice(0, -1);
  if (before.filter(({ charges }) => charges > 0).length < busyDaysMin) return undefined;
  const counted = before.slice(before.findIndex(({ charges }) => charges > 0));
  const total = (of: (day: DayFigures) => number) => counted.reduce((sum, day) => sum + of(day), 0);
  const netMils = total(({ chargedMils, reversedMils }) => chargedMils - reversedMils);
  const kept = total(({ charges, reversals }) => charges - reversals);
  if (netMils <= 0 || kept <= 0) return undefined;
  return {
    days: Math.floor((availableMils * counted.length) / netMils),
    searches: Math.floor((availableMils * kept) / netMils),
  };
}

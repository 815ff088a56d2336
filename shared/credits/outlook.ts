import type { Querying } from "../database/transaction.ts";
import { type DayFigures, readLedgerDays } from "./ledger-days.ts";

/** How long credit lasts at the pace of late. The overview and the low-balance event say the same. */

const dayMs = 86_400_000;
const weekDays = 7;
/** A later date would be a guess about a guess. */
const outlookDaysMax = 3_650;
/** A day is a spike from this many times the mean of the six days before it, */
const spikeFactor = 3;
/** if it has this many searches, */
const spikeSearchesMin = 20;
/** and so many of the six had any: before that no pace is usual. */
const busyDaysMin = 3;

/** What a day costs: searches that stayed charged, and mils charged minus mils credited back. */
export interface Pace {
  searches: number;
  mils: number;
}

export interface Outlook {
  /** Of the last 24 hours. */
  day: Pace;
  /** The mean of a day since the first charge of the last 168 hours. */
  week: Pace;
  /** The date in UTC when the balance ends at the larger of the two; null if that is more than ten years away. */
  endsOn: string | null;
  /** The searches that the balance pays for at that pace. */
  searches: number;
  /** The usual searches a day, if the last 24 hours had far more. */
  spikeOver: number | undefined;
}

/** Reads the last seven times 24 hours of an organization, oldest first; the last ones end now. */
export function readPaceDays(database: Querying, organizationId: string, now: Date): Promise<DayFigures[]> {
  const from = new Date(now.getTime() - weekDays * dayMs).toISOString();
  return readLedgerDays(database, organizationId, { from, days: weekDays });
}

/**
 * How long the balance lasts, from the larger pace of the last day and of the last week. A day without searches counts, so that
 * a program that rests on Sundays does not seem faster; days before the first charge do not.
 * @param days as `readPaceDays` returns them.
 * @returns undefined if nothing stayed charged.
 */
export function outlookOf(days: readonly DayFigures[], balanceMils: number, now: Date): Outlook | undefined {
  const counted = days.slice(days.findIndex(({ charges }) => charges > 0));
  const [day, week, before] = [paceOf(counted.slice(-1)), paceOf(counted), paceOf(counted.slice(0, -1))];
  const pace = day.mils > week.mils ? day : week;
  if (pace.mils <= 0 || pace.searches <= 0) return undefined;
  const left = Math.max(0, balanceMils) / pace.mils;
  const isSpike =
    day.searches >= Math.max(spikeSearchesMin, spikeFactor * before.searches) &&
    days.slice(0, -1).filter(({ charges }) => charges > 0).length >= busyDaysMin;
  return {
    day,
    week,
    endsOn: left > outlookDaysMax ? null : new Date(now.getTime() + left * dayMs).toISOString().slice(0, 10),
    searches: Math.floor(left * pace.searches),
    spikeOver: isSpike ? before.searches : undefined,
  };
}

function paceOf(days: readonly DayFigures[]): Pace {
  const mean = (of: (day: DayFigures) => number) =>
    days.reduce((sum, day) => sum + of(day), 0) / Math.max(1, days.length);
  return {
    searches: mean(({ charges, reversals }) => charges - reversals),
    mils: mean(({ chargedMils, reversedMils }) => chargedMils - reversedMils),
  };
}

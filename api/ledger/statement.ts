import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { type DayFigures, readLedgerDays, withoutPlace } from "../../shared/credits/ledger-days.ts";

const creditRow = z.object({
  kind: z.enum(["grant", "correction"]),
  at: z.date(),
  id: z.string(),
  /** Below 0 for a correction that took credit away. */
  mils: z.number(),
  note: z.string(),
});
/** Credit that was added by a top-up or by the operator, or that the operator corrected. */
type CreditEntry = z.infer<typeof creditRow>;

/**
 * A calendar month of an organization's ledger, in UTC and in mils. Exactly: opening + added + corrected −
 * (charged − reversed) = closing. A charge that was reversed in a later month is in both months, in each with its own entry.
 */
export interface Statement {
  /** As in `2026-03`. */
  month: string;
  openingMils: number;
  addedMils: number;
  /** What corrections added; below 0 if they took more away. */
  correctedMils: number;
  chargedMils: number;
  reversedMils: number;
  closingMils: number;
  /** The days with entries, oldest first. */
  days: DayFigures[];
  /** The first 1,000 grants and corrections of the month, oldest first. */
  credits: CreditEntry[];
  /** The sum of the others. */
  unlistedMils: number;
}

const creditsMax = 1_000;

/** The months that have statements, newest first: from the month of the organization's creation to this one. */
export function statementMonths(createdAt: Date, now: Date): string[] {
  const months: string[] = [];
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
  while (months.length === 0 || nextMonth(month) > createdAt) {
    months.push(month.toISOString().slice(0, 7));
    month.setUTCMonth(month.getUTCMonth() - 1);
  }
  return months;
}

const nextMonth = (month: Date) => new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1));

/**
 * Reads the statement of a month that {@link statementMonths} has. The cost does not grow with the number of charges; see
 * {@link readLedgerDays}. Entries are never changed, so a month that is over has the same statement for ever.
 */
export async function readStatement(database: Database, organizationId: string, month: string): Promise<Statement> {
  const from = `${month}-01`;
  const days = Math.round((nextMonth(new Date(from)).getTime() - new Date(from).getTime()) / 86_400_000);
  // The day after the month begins with the closing balance.
  const read = await readLedgerDays(database, organizationId, { from, days: days + 1 });
  const [first, after] = [read[0], read.pop()];
  const sum = (of: (day: DayFigures) => number) => read.reduce((total, day) => total + of(day), 0);
  const [addedMils, correctedMils, chargedMils, reversedMils] = [
    sum((day) => day.grantedMils),
    sum((day) => day.correctedMils),
    sum((day) => day.chargedMils),
    sum((day) => day.reversedMils),
  ];
  const [openingMils, closingMils] = [first?.openingMils ?? 0, after?.openingMils ?? 0];
  const range = { first: first?.first ?? 0, past: after?.first ?? 0 };
  const credits = await readCredits(database, organizationId, range);
  return {
    month,
    openingMils,
    addedMils,
    correctedMils,
    chargedMils,
    reversedMils,
    closingMils,
    days: read.filter((day) => day.past > day.first || day.refunds > 0).map(withoutPlace),
    credits,
    unlistedMils: addedMils + correctedMils - credits.reduce((total, { mils }) => total + mils, 0),
  };
}

/** By version, so that an entry that is added meanwhile is in neither figure. */
async function readCredits(
  database: Database,
  organizationId: string,
  { first, past }: { first: number; past: number },
): Promise<CreditEntry[]> {
  const { rows } = await database.query(
    `select kind, created_at as at, grant_id as id, amount_mils as mils, coalesce(reason, '') as note from ledger_entries
     where organization_id = $1 and kind in ('grant', 'correction') and kind <> 'charge' and version >= $2 and version < $3
     order by version limit $4`,
    [organizationId, first, past, creditsMax],
  );
  return rows.map((row) => creditRow.parse(row));
}

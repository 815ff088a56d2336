import { z } from "zod";
import { sqlStateOf } from "../../shared/database/transient-errors.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import type { VersionedBalance } from "../../shared/credits/versioned-balance.ts";

/** Corrections of a balance by an operator: entries of the ledger that add credit or take it away, and are no spending. */

export interface Correction {
  organizationId: string;
  /** A correction counts once, however often it is sent with the same id. */
  correctionId: string;
  /** Below 0 it takes credit away. Never 0. */
  mils: number;
  reason: string;
}

const correctedRow = z.object({ fresh: z.boolean(), balance_mils: z.number(), version: z.number() });

/**
 * Corrects a balance. Searches that run may then be refused at their end, which costs their callers nothing.
 * @returns undefined if the organization does not exist.
 * @throws what {@link correctionRefusal} explains, if the balance would fall below 0 or grow too large.
 */
export async function correctCredit(
  database: Querying,
  { organizationId, correctionId, mils, reason }: Correction,
): Promise<(VersionedBalance & { fresh: boolean }) | undefined> {
  const values = [organizationId, correctionId, mils, reason];
  const { rows } = await database.query("select * from correct_credit($1, $2, $3, $4)", values);
  if (!rows[0]) return undefined;
  const { fresh, balance_mils: balanceMils, version } = correctedRow.parse(rows[0]);
  return { fresh, balanceMils, version };
}

// By the SQLSTATEs of a violated check and a violated unique index.
const refusals: Record<string, string> = {
  "23514": `A balance is at least 0 and at most ${Number.MAX_SAFE_INTEGER} mils. Nothing was changed.`,
  "23505": "This correction id was used for another organization.",
};

/** Why the ledger refused a correction, as a sentence; undefined for any other error. */
export function correctionRefusal(error: unknown): string | undefined {
  return refusals[sqlStateOf(error) ?? ""];
}

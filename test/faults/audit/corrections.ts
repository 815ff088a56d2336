import { z } from "zod";
import type { Database } from "../../../shared/database/pool.ts";

/** A correction that an operator sent, perhaps several times with the same id. */
export interface SentCorrection {
  organizationId: string;
  correctionId: string;
  mils: number;
  /** How many of its requests reported that they made it. Lost replies do not count. */
  made: number;
  /** Whether any request reported that it is made, by itself or by an earlier one. Otherwise it was refused. */
  isMade: boolean;
}

/** A correction in the ledger. */
export type CorrectionEntry = Pick<SentCorrection, "organizationId" | "correctionId" | "mils">;

const entryRow = z.object({ organization_id: z.string(), grant_id: z.string(), mils: z.number() });

export async function readCorrections(
  database: Database,
  organizationIds: readonly string[],
): Promise<CorrectionEntry[]> {
  const { rows } = await database.query(
    `select organization_id, grant_id, amount_mils as mils from ledger_entries
     where kind = 'correction' and organization_id = any ($1)`,
    [organizationIds],
  );
  return rows
    .map((row) => entryRow.parse(row))
    .map(({ organization_id: organizationId, grant_id: correctionId, mils }) => ({
      organizationId,
      correctionId,
      mils,
    }));
}

/**
 * Each accepted correction is in the ledger once, with its organization and amount. No other correction is.
 * @returns a sentence per broken promise.
 */
export function auditCorrections(sent: readonly SentCorrection[], entries: readonly CorrectionEntry[]): string[] {
  const known = new Set(sent.map(({ correctionId }) => correctionId));
  const unknown = entries.filter(({ correctionId }) => !known.has(correctionId));
  const wrong = sent.flatMap(({ organizationId, correctionId, mils, made, isMade }) => {
    const subject = `${correctionId} of ${mils} mils for ${organizationId}`;
    const own = entries.filter((entry) => entry.correctionId === correctionId);
    const isRight = own.every((entry) => entry.organizationId === organizationId && entry.mils === mils);
    return [
      ...(made > 1 ? [`${subject} was made ${made} times`] : []),
      ...(own.length === (isMade ? 1 : 0)
        ? []
        : [`${subject} was ${isMade ? "accepted" : "refused"}, and the ledger has ${own.length} entries of it`]),
      ...(isRight ? [] : [`${subject} is in the ledger with another organization or amount`]),
    ];
  });
  return [...unknown.map(({ correctionId }) => `${correctionId} is in the ledger, and no operator sent it`), ...wrong];
}

/** The sum of an organization's accepted corrections. */
export const correctedMilsOf = (sent: readonly SentCorrection[], organizationId: string): number =>
  sent.reduce((sum, one) => (one.isMade && one.organizationId === organizationId ? sum + one.mils : sum), 0);

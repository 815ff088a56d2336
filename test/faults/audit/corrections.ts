import { z } from "zod";
import type { Database } from "../../../shared/database/pool.ts";

/** A correction of a balance that an operator sent, perhaps several times with its id. */
export interface SentCorrection {
  organizationId: string;
  correctionId: string;
  mils: number;
  /** How many of its requests were answered that they made it; not those whose answer was lost. */
  made: number;
  /** Whether any request was answered that it is made, by itself or by an earlier one. The others were refused. */
  isMade: boolean;
}

/** A correction as the ledger has it. */
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
 * Each correction that was accepted is in the ledger once, with its organization and amount; one that was refused is not, and
 * no other one is. @returns a sentence for every broken promise.
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

/** What the corrections that were made added to the balance of an organization; below 0 if they took more away. */
export const correctedMilsOf = (sent: readonly SentCorrection[], organizationId: string): number =>
  sent.reduce((sum, one) => (one.isMade && one.organizationId === organizationId ? sum + one.mils : sum), 0);

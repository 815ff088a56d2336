import { z } from "zod";
import type { LimitName } from "../../../shared/credits/limits.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { Attempt } from "./evidence.ts";

/** The evidence about spending: the ledgers, the limits that were set, and the refusals that callers got. */

/**
 * A ledger entry about a search, or a refund with the version after which it was decided. A charge has negative mils, a reversal
 * positive ones.
 */
export interface SpendingEntry {
  organizationId: string;
  version: number;
  requestId: string;
  kind: "charge" | "refund" | "reversal";
  mils: number;
  /** The token of the search; null if the process that ended it did not know the token. */
  tokenId: string | null;
  reason: string | null;
  /** By the clock of this machine. */
  createdAtMs: number;
}

export type Period = LimitName["period"];

/** Limits of an organization or a token, with the ledger versions at which they may have been in force. */
export interface LimitsInForce extends Record<Period, number | null> {
  organizationId: string;
  /** The id of the organization or the token. */
  ownerId: string;
  fromVersion: number;
  toVersion: number;
  /** When others had replaced them, by the clock of this machine. */
  replacedAtMs: number;
}

export interface SpendingEvidence {
  /** In the order of each ledger. */
  entries: readonly SpendingEntry[];
  limits: readonly LimitsInForce[];
  /** The tokens that may search. */
  searchTokenIds: ReadonlySet<string>;
  attempts: readonly Attempt[];
}

const entryRow = z.object({
  organization_id: z.string(),
  version: z.number(),
  request_id: z.string(),
  kind: z.enum(["charge", "refund", "reversal"]),
  mils: z.number(),
  token_id: z.string().nullable(),
  reason: z.string().nullable(),
  created_at: z.date(),
});

export async function readSpendingEntries(
  database: Database,
  organizationIds: readonly string[],
): Promise<SpendingEntry[]> {
  const { rows } = await database.query(
    `select organization_id, version, request_id, kind, amount_mils as mils, token_id, reason, created_at, 0 as number
     from ledger_entries where request_id is not null and organization_id = any ($1)
     union all
     select organization_id, version, request_id, 'refund', 0, token_id, reason, created_at, number
     from refunds where organization_id = any ($1)
     order by organization_id, version, number`,
    [organizationIds],
  );
  return rows
    .map((row) => entryRow.parse(row))
    .map(({ organization_id, request_id, token_id, created_at, ...entry }) => ({
      ...entry,
      organizationId: organization_id,
      requestId: request_id,
      tokenId: token_id,
      createdAtMs: created_at.getTime(),
    }));
}

export const periods = ["day", "month"] as const;
export const isOf = (ownerId: string) => (entry: SpendingEntry) =>
  entry.organizationId === ownerId || entry.tokenId === ownerId;

/**
 * The mils spent in the period up to each entry. An entry after one of the new day belongs to the new day even if its transaction
 * began before midnight. A reversal counts with its charge.
 */
export function spentUpTo(
  entries: readonly SpendingEntry[],
  period: Period,
): { entry: SpendingEntry; spentMils: number }[] {
  let current = "";
  let spentMils = 0;
  const charged = new Set<string>();
  return entries.map((entry) => {
    const began = new Date(entry.createdAtMs).toISOString().slice(0, period === "day" ? 10 : 7);
    if (began > current) {
      spentMils = 0;
      charged.clear();
    }
    current = began > current ? began : current;
    if (entry.kind === "charge") charged.add(entry.requestId);
    if (charged.has(entry.requestId)) spentMils -= entry.mils;
    return { entry, spentMils };
  });
}

/** The limits that may have been in force at a version, or before it and replaced after `sinceMs`; infinite if there was none. */
export const limitsAt = (
  limits: readonly LimitsInForce[],
  ownerId: string,
  { version, sinceMs = Number.POSITIVE_INFINITY }: { version: number; sinceMs?: number },
  period: Period,
): number[] =>
  limits
    .filter((one) => one.ownerId === ownerId && one.fromVersion <= version)
    .filter((one) => version <= one.toVersion || sinceMs < one.replacedAtMs)
    .map((one) => one[period] ?? Number.POSITIVE_INFINITY);

const limitRefusal = z.object({
  error: z.object({
    details: z.object({
      reason: z.enum(["daily_limit", "monthly_limit", "token_limit"]),
      period: z.enum(periods),
      limitMils: z.number().optional(),
    }),
  }),
});

/** The limit that refused a search. */
export interface RefusingLimit {
  isOfToken: boolean;
  period: Period;
  /** Undefined if the refusal names none. */
  limitMils: number | undefined;
}

/** @returns undefined for any answer but a refusal by a limit. */
export function limitThatRefused({ answer }: Attempt): RefusingLimit | undefined {
  if (answer?.status !== 402) return undefined;
  const { success, data } = limitRefusal.safeParse(JSON.parse(answer.text));
  if (!success) return undefined;
  const { reason, period, limitMils } = data.error.details;
  return { isOfToken: reason === "token_limit", period, limitMils };
}

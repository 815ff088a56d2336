import { z } from "zod";
import { limitBehind, type LimitName } from "../../../shared/credits/limits.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { type Attempt, priceMils } from "./evidence.ts";

/** What limits and scopes promise, compared with the ledger. Each function returns a sentence for every broken promise. */

// An entry has the time at which its transaction began. It counts once that ends, which a locked ledger delays.
const commitMsMax = 20_000;
// A hold stands until the deadline of its search, or until Postgres and Redis are back and it is swept.
const heldMsMax = 60_000;

/** An entry of an organization's ledger that is about a search. A charge has negative mils, a reversal positive ones. */
export interface SpendingEntry {
  organizationId: string;
  version: number;
  requestId: string;
  kind: "charge" | "refund" | "reversal";
  mils: number;
  /** Whose search it was; null where the process that ended it did not know. */
  tokenId: string | null;
  reason: string | null;
  /** By the clock of this machine. */
  createdAtMs: number;
}

type Period = LimitName["period"];

/** Limits of an organization or a token, and the versions of the ledger at which they may have been in force. */
export interface LimitsInForce extends Record<Period, number | null> {
  organizationId: string;
  /** The id of the organization or the token. */
  ownerId: string;
  fromVersion: number;
  toVersion: number;
}

export interface SpendingEvidence {
  /** In the order of each ledger. */
  entries: readonly SpendingEntry[];
  limits: readonly LimitsInForce[];
  /** The tokens that may search. */
  searchTokenIds: ReadonlySet<string>;
  attempts: readonly Attempt[];
}

/** @returns a sentence for every broken promise. */
export const auditSpending = (evidence: SpendingEvidence): string[] =>
  [chargesBeyondLimits, refundsBelowLimits, refusalsBelowLimits, chargesWithoutScope, answersAgainstScopes].flatMap(
    (check) => check(evidence),
  );

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
    `select organization_id, version, request_id, kind, amount_mils as mils, token_id, reason, created_at from ledger_entries
     where kind <> 'grant' and organization_id = any ($1) order by organization_id, version`,
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

const periods = ["day", "month"] as const;
const isOf = (ownerId: string) => (entry: SpendingEntry) =>
  entry.organizationId === ownerId || entry.tokenId === ownerId;

/** The mils spent in the period up to each entry. An entry that began before its neighbour of a new day counts with that. */
function spentUpTo(entries: readonly SpendingEntry[], period: Period): { entry: SpendingEntry; spentMils: number }[] {
  let current = "";
  let spentMils = 0;
  return entries.map((entry) => {
    const began = new Date(entry.createdAtMs).toISOString().slice(0, period === "day" ? 10 : 7);
    if (began > current) spentMils = 0;
    current = began > current ? began : current;
    spentMils -= entry.mils;
    return { entry, spentMils };
  });
}

/** The limits that may have been in force when this entry was made; infinite without one. */
const limitsAt = (limits: readonly LimitsInForce[], ownerId: string, version: number, period: Period): number[] =>
  limits
    .filter((one) => one.ownerId === ownerId && one.fromVersion <= version && version <= one.toVersion)
    .map((one) => one[period] ?? Number.POSITIVE_INFINITY);

/** Charges after which more was spent than any limit that was in force allowed, whatever was given back later. */
export function chargesBeyondLimits({ entries, limits }: SpendingEvidence): string[] {
  return [...new Set(limits.map(({ ownerId }) => ownerId))].flatMap((ownerId) =>
    periods.flatMap((period) =>
      spentUpTo(entries.filter(isOf(ownerId)), period).flatMap(({ entry, spentMils }) => {
        const limitMils = Math.max(...limitsAt(limits, ownerId, entry.version, period));
        const isBeyond = entry.kind === "charge" && Number.isFinite(limitMils) && spentMils > limitMils;
        return isBeyond
          ? [`${ownerId} spent ${spentMils} mils of ${limitMils} in its ${period} by version ${entry.version}`]
          : [];
      }),
    ),
  );
}

/** Answers that Postgres refused to charge for a limit although every limit left their price. */
export function refundsBelowLimits({ entries, limits }: SpendingEvidence): string[] {
  const refused = entries.filter(({ kind, reason }) => kind === "refund" && limitBehind(reason ?? undefined));
  return refused.flatMap((refund) => {
    const { organizationId, tokenId, version, reason } = refund;
    const isReached = [organizationId, tokenId ?? ""].some((ownerId) =>
      periods.some((period) => {
        const before = entries.filter((entry) => isOf(ownerId)(entry) && entry.version <= version);
        const spentMils = spentUpTo(before, period).at(-1)?.spentMils ?? 0;
        return spentMils + priceMils > Math.min(...limitsAt(limits, ownerId, version, period));
      }),
    );
    return isReached
      ? []
      : [`version ${version} of ${organizationId} was refused for ${reason}, and no limit was reached`];
  });
}

const limitRefusal = z.object({
  error: z.object({
    details: z.object({
      reason: z.enum(["daily_limit", "monthly_limit", "token_limit"]),
      period: z.enum(periods),
      limitMils: z.number(),
    }),
  }),
});

/** The limit that refused a search; undefined for any other answer. */
export function limitThatRefused({
  answer,
}: Attempt): { isOfToken: boolean; period: Period; limitMils: number } | undefined {
  if (answer?.status !== 402) return undefined;
  const { success, data } = limitRefusal.safeParse(JSON.parse(answer.text));
  if (!success) return undefined;
  const { reason, period, limitMils } = data.error.details;
  return { isOfToken: reason === "token_limit", period, limitMils };
}

const epochMs = (ms: number) => performance.timeOrigin + ms;

/** 402s before the search ran, for a limit that was never set, or that all charges, and all searches that may have been in flight, did not reach. */
export function refusalsBelowLimits({ entries, limits, attempts }: SpendingEvidence): string[] {
  return attempts.flatMap((attempt) => {
    const limit = limitThatRefused(attempt);
    // Postgres refused the charge of a search that had run: see refundsBelowLimits.
    if (!limit || entries.some(({ requestId }) => requestId === attempt.answer?.requestId)) return [];
    const { period, limitMils } = limit;
    const ownerId = limit.isOfToken ? attempt.tokenId : attempt.organizationId;
    const subject = `"${attempt.keyword}" was refused for the ${period} of ${ownerId}`;
    if (!limits.some((one) => one.ownerId === ownerId && one[period] === limitMils))
      return [`${subject}, which never had a limit of ${limitMils} mils`];
    const sinceMs = epochMs(attempt.sentAtMs) - commitMsMax;
    const untilMs = epochMs(attempt.endedAtMs) + heldMsMax;
    const before = entries.filter((entry) => isOf(ownerId)(entry) && entry.createdAtMs < sinceMs);
    const spentMils = spentUpTo(before, period).at(-1)?.spentMils ?? 0;
    // The sweeper does not know whose token it was.
    const mayBeIts = (entry: SpendingEntry) =>
      isOf(ownerId)(entry) || (entry.organizationId === attempt.organizationId && entry.tokenId === null);
    const decided = entries.filter(
      (entry) =>
        mayBeIts(entry) && entry.kind !== "reversal" && sinceMs <= entry.createdAtMs && entry.createdAtMs <= untilMs,
    );
    // If Redis and the API that waited lost a search, no entry decides it.
    const lost = attempts.filter(
      (other) =>
        other.organizationId === attempt.organizationId &&
        (!other.answer || other.answer.status >= 500) &&
        other.sentAtMs < attempt.endedAtMs &&
        other.endedAtMs > attempt.sentAtMs - heldMsMax,
    );
    const mostMils = spentMils + priceMils * (decided.length + lost.length + 1);
    return mostMils > limitMils
      ? []
      : [`${subject}: ${limitMils} mils, and at most ${mostMils} were spent, held and asked`];
  });
}

export const chargesWithoutScope = ({ entries, searchTokenIds }: SpendingEvidence): string[] =>
  entries
    .filter(({ kind, tokenId }) => kind === "charge" && !searchTokenIds.has(tokenId ?? ""))
    .map(
      ({ organizationId, version, tokenId }) =>
        `version ${version} of ${organizationId} charges ${tokenId}, which may not search`,
    );

/** A token without the scope gets no answer and no 402, and its 401 names the scope. Another one gets no 401. */
export const answersAgainstScopes = ({ attempts, searchTokenIds }: SpendingEvidence): string[] =>
  attempts.flatMap(({ answer, tokenId, keyword }) => {
    if (!answer || ![200, 401, 402].includes(answer.status)) return [];
    const mayBeSearched = searchTokenIds.has(tokenId);
    const isRight = mayBeSearched
      ? answer.status !== 401
      : answer.status === 401 && answer.text.includes('"reason":"scope"');
    return isRight
      ? []
      : [`"${keyword}" was answered ${answer.status} to a token that may ${mayBeSearched ? "" : "not "}search`];
  });

import { limitBehind } from "../../../shared/credits/limits.ts";
import { priceMils } from "./evidence.ts";
import { refusalsAtTheEnd, refusalsBelowLimits } from "./limit-refusals.ts";
import { isOf, limitsAt, periods, type SpendingEvidence, spentUpTo } from "./spending-evidence.ts";

// For so long a search is charged by the limits that admitted it, if these are larger.
const searchMsMax = 30_000;

/** Compares the promises of limits and scopes with the ledger. Each function returns a sentence per broken promise. */

export const auditSpending = (evidence: SpendingEvidence): string[] =>
  [
    chargesBeyondLimits,
    refundsBelowLimits,
    refusalsBelowLimits,
    refusalsAtTheEnd,
    chargesWithoutScope,
    answersAgainstScopes,
  ].flatMap((check) => check(evidence));

/** Charges that exceed every limit that may have been in force since their search began, whatever was reversed later. */
export function chargesBeyondLimits({ entries, limits }: SpendingEvidence): string[] {
  return [...new Set(limits.map(({ ownerId }) => ownerId))].flatMap((ownerId) =>
    periods.flatMap((period) =>
      spentUpTo(entries.filter(isOf(ownerId)), period).flatMap(({ entry, spentMils }) => {
        const sinceMs = entry.createdAtMs - searchMsMax;
        const limitMils = Math.max(...limitsAt(limits, ownerId, { version: entry.version, sinceMs }, period));
        const isBeyond = entry.kind === "charge" && Number.isFinite(limitMils) && spentMils > limitMils;
        return isBeyond
          ? [`${ownerId} spent ${spentMils} mils of ${limitMils} in its ${period} by version ${entry.version}`]
          : [];
      }),
    ),
  );
}

/** Answers that Postgres refused to charge because of a limit although every limit left room for them. */
export function refundsBelowLimits({ entries, limits }: SpendingEvidence): string[] {
  const refused = entries.filter(({ kind, reason }) => kind === "refund" && limitBehind(reason ?? undefined));
  return refused.flatMap((refund) => {
    const { organizationId, tokenId, version, reason } = refund;
    const isReached = [organizationId, tokenId ?? ""].some((ownerId) =>
      periods.some((period) => {
        const before = entries.filter((entry) => isOf(ownerId)(entry) && entry.version <= version);
        const spentMils = spentUpTo(before, period).at(-1)?.spentMils ?? 0;
        return spentMils + priceMils > Math.min(...limitsAt(limits, ownerId, { version }, period));
      }),
    );
    return isReached
      ? []
      : [`version ${version} of ${organizationId} was refused for ${reason}, and no limit was reached`];
  });
}

export const chargesWithoutScope = ({ entries, searchTokenIds }: SpendingEvidence): string[] =>
  entries
    .filter(({ kind, tokenId }) => kind === "charge" && !searchTokenIds.has(tokenId ?? ""))
    .map(
      ({ organizationId, version, tokenId }) =>
        `version ${version} of ${organizationId} charges ${tokenId}, which may not search`,
    );

/** A token without the scope gets neither an answer nor a 402, and its 401 names the scope. Other tokens get no 401. */
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

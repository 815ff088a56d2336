import type { Attempt } from "./evidence.ts";
import { isOf, limitThatRefused, type SpendingEntry, type SpendingEvidence, spentUpTo } from "./spending-evidence.ts";

/** Compares the 402s that name a limit with the ledger. Each function returns a sentence per broken promise. */

// An entry has the start time of its transaction. It counts from the commit, which a locked ledger delays.
const commitMsMax = 20_000;
// A hold stands until the deadline of its search, or until it is swept after an outage of Postgres and Redis.
const heldMsMax = 60_000;

const epochMs = (ms: number) => performance.timeOrigin + ms;

/** The refund of a search that had run. */
const refundOf = ({ answer }: Attempt, entries: readonly SpendingEntry[]) =>
  entries.find(({ kind, requestId }) => kind === "refund" && requestId === answer?.requestId);

/**
 * 402s before the search ran, for a limit that was never set, or that all charges and searches in flight together did not
 * reach.
 */
export function refusalsBelowLimits({ entries, limits, attempts }: SpendingEvidence): string[] {
  return attempts.flatMap((attempt) => {
    const limit = limitThatRefused(attempt);
    if (!limit || refundOf(attempt, entries)) return [];
    const { period, limitMils } = limit;
    const ownerId = limit.isOfToken ? attempt.tokenId : attempt.organizationId;
    const subject = `"${attempt.keyword}" was refused for the ${period} of ${ownerId}`;
    if (limitMils === undefined || !limits.some((one) => one.ownerId === ownerId && one[period] === limitMils))
      return [`${subject}, which never had a limit of ${limitMils} mils`];
    const sinceMs = epochMs(attempt.sentAtMs) - commitMsMax;
    const untilMs = epochMs(attempt.endedAtMs) + heldMsMax;
    const before = entries.filter((entry) => isOf(ownerId)(entry) && entry.createdAtMs < sinceMs);
    const spentMils = spentUpTo(before, period).at(-1)?.spentMils ?? 0;
    // The sweeper does not know the token of a search.
    const mayBeIts = (entry: SpendingEntry) =>
      isOf(ownerId)(entry) || (entry.organizationId === attempt.organizationId && entry.tokenId === null);
    const decided = entries.filter(
      (entry) =>
        mayBeIts(entry) && entry.kind !== "reversal" && sinceMs <= entry.createdAtMs && entry.createdAtMs <= untilMs,
    );
    // A search that Redis and its API have lost gets no decision.
    const lost = attempts.filter(
      (other) =>
        other.organizationId === attempt.organizationId &&
        (!other.answer || other.answer.status >= 500) &&
        other.sentAtMs < attempt.endedAtMs &&
        other.endedAtMs > attempt.sentAtMs - heldMsMax,
    );
    const mostMils = spentMils + attempt.priceMils * (decided.length + lost.length + 1);
    return mostMils > limitMils
      ? []
      : [`${subject}: ${limitMils} mils, and at most ${mostMils} were spent, held and asked`];
  });
}

/**
 * 402s of searches that had run. The limit that they name must have been set by then and explain the refusal. A refusal names
 * none if the limit changed while the search ran.
 */
export function refusalsAtTheEnd({ entries, limits, attempts }: SpendingEvidence): string[] {
  return attempts.flatMap((attempt) => {
    const limit = limitThatRefused(attempt);
    const refund = refundOf(attempt, entries);
    if (!limit || !refund) return [];
    const { period, limitMils } = limit;
    const ownerId = limit.isOfToken ? attempt.tokenId : attempt.organizationId;
    const subject = `"${attempt.keyword}" was refused at its end for the ${period} of ${ownerId}`;
    const own = entries.filter(isOf(ownerId));
    const until = limits.filter((one) => one.ownerId === ownerId && one.fromVersion <= refund.version);
    if (limitMils === undefined) {
      const sentAtMs = epochMs(attempt.sentAtMs) - commitMsMax;
      const version = own.findLast(({ createdAtMs }) => createdAtMs < sentAtMs)?.version ?? 0;
      const inForce = new Set(until.filter(({ toVersion }) => toVersion >= version).map((one) => one[period]));
      // A repeated settlement counts again, without the charges reversed meanwhile.
      const isLess = own.some(({ kind, version: at }) => kind === "reversal" && at > refund.version);
      return inForce.size > 1 || isLess ? [] : [`${subject} without its limit, which had not changed`];
    }
    if (!until.some((one) => one[period] === limitMils))
      return [`${subject}, which had no limit of ${limitMils} mils by then`];
    const spent = spentUpTo(own, period).filter(
      ({ entry }) => entry.version >= refund.version && entry.createdAtMs <= epochMs(attempt.endedAtMs),
    );
    const mostMils = Math.max(...spent.map(({ spentMils }) => spentMils)) + attempt.priceMils;
    return mostMils > limitMils ? [] : [`${subject}: ${limitMils} mils, and ${mostMils} were spent and asked`];
  });
}

import type { Attempt } from "./evidence.ts";
import { isOf, limitThatRefused, type SpendingEntry, type SpendingEvidence, spentUpTo } from "./spending-evidence.ts";

/** The 402s that name a limit, compared with the ledger. Each function returns a sentence for every broken promise. */

// An entry has the time at which its transaction began. It counts once that ends, which a locked ledger delays.
const commitMsMax = 20_000;
// A hold stands until the deadline of its search, or until Postgres and Redis are back and it is swept.
const heldMsMax = 60_000;

const epochMs = (ms: number) => performance.timeOrigin + ms;

/** The refund of a search which had run. */
const refundOf = ({ answer }: Attempt, entries: readonly SpendingEntry[]) =>
  entries.find(({ kind, requestId }) => kind === "refund" && requestId === answer?.requestId);

/** 402s before the search ran, for a limit that was never set, or that all charges, and all searches that may have been in flight, did not reach. */
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
    // The sweeper does not know whose token it was.
    const mayBeIts = (entry: SpendingEntry) =>
      isOf(ownerId)(entry) || (entry.organizationId === attempt.organizationId && entry.tokenId === null);
    const decided = entries.filter(
      (entry) =>
        mayBeIts(entry) && entry.kind !== "reversal" && sinceMs <= entry.createdAtMs && entry.createdAtMs <= untilMs,
    );
    // If Redis and the API that waited lost a search, nothing decides it.
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
 * 402s of searches that had run: the limit that they name was set by then and explains the refusal. Only one that changed while the
 * search ran is left out.
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
      // A settlement that is repeated counts anew, without what was given back meanwhile.
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

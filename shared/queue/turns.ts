import type { Redis } from "ioredis";
import { queueKeys, scorePerTurn } from "./search-queue.ts";

/**
 * Turns in the queue, by which organizations share the workers. The searches of an organization count when they are admitted,
 * with those that it has open then.
 *
 * The share of an organization is the slots of all workers ÷ the organizations with open searches. A search within it goes
 * before all that are beyond: the only one of its organization first (turn 0), then those that are the second one, and so on.
 * There are about as many of these as slots, so none of them waits for long.
 *
 * Those beyond shares wait in rounds, in each of which every organization gets one search started: the first search of an
 * organization beyond its share waits for the next round, its second one for the round after that. A search keeps its turn, and
 * rounds only go on. So no organization waits for more rounds than it has searches open, whatever the others send, and what it
 * sends later overtakes its own earlier searches only where these have fewer beside them.
 */

// BullMQ takes turns up to 2^21. If searches wait beyond shares for a million rounds without a break, turns no longer tell
// them apart, until none waits.
const turnMax = 2 ** 21 - 1;
/** Turns above this are of searches beyond the share of their organization. */
export const withinShareMax = 2 ** 20;
// The turns of searches do not say how old they are. More than these wait only where the APIs have to refuse searches.
const agedMax = 1_000;
const beyondShareFrom = (withinShareMax + 1) * scorePerTurn;

/** @param options.organizations with open searches. @returns slots for each, which may be less than one. */
export function shareOf({ slots, organizations }: { slots: number; organizations: number }): number {
  return slots / Math.max(1, organizations);
}

/** The turn of a search. @param openSearches of its organization, with this one. @param comingTurn of the search that is next. */
export function turnOf(openSearches: number, { share, comingTurn }: { share: number; comingTurn: number }): number {
  if (openSearches <= share) return Math.min(openSearches - 1, withinShareMax);
  return Math.min(turnMax, Math.max(comingTurn, withinShareMax) + Math.ceil(openSearches - share));
}

/** Searches that wait for a worker, and searches that a worker runs. */
export interface Backlog {
  waiting: number;
  running: number;
  /** The turn that comes next, of the searches beyond the shares of their organizations; 0 if none waits. */
  turn: number;
}

/** Reads the length of the queue, in one round trip. @throws if Redis does not answer. */
export async function readBacklog(redis: Redis): Promise<Backlog> {
  const { waiting, waitingByTurn, running } = queueKeys;
  const [only, others, [, score = "0"], ran] = await Promise.all([
    redis.llen(waiting),
    redis.zcard(waitingByTurn),
    redis.zrangebyscore(waitingByTurn, beyondShareFrom, "+inf", "WITHSCORES", "LIMIT", 0, 1),
    redis.llen(running),
  ]);
  return { waiting: only + others, running: ran, turn: Math.floor(Number(score) / scorePerTurn) };
}

/**
 * Reads how many searches wait although they are within the shares of their organizations, and how many of these are the only
 * one of theirs. @throws if Redis does not answer.
 */
export async function readWaitingWithinShare(redis: Redis): Promise<{ withinShare: number; only: number }> {
  const [only, others] = await Promise.all([
    redis.llen(queueKeys.waiting),
    redis.zcount(queueKeys.waitingByTurn, "-inf", beyondShareFrom - 1),
  ]);
  return { withinShare: only + others, only };
}

/**
 * How long the oldest waiting search has waited, of the next thousand; 0 if none waits. @param nowMs by Redis' clock.
 */
export async function readOldestWaitMs(redis: Redis, nowMs: number): Promise<number> {
  const [first, others] = await Promise.all([
    redis.lindex(queueKeys.waiting, -1),
    redis.zrange(queueKeys.waitingByTurn, 0, `${agedMax - 1}`),
  ]);
  // Request ids are in the order of time.
  const [oldest] = [...(first ? [first] : []), ...others].toSorted();
  if (oldest === undefined) return 0;
  const enqueuedAtMs = Number(await redis.hget(queueKeys.job(oldest), "timestamp"));
  return enqueuedAtMs > 0 ? Math.max(0, nowMs - enqueuedAtMs) : 0;
}

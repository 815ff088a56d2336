/**
 * Turns in the queue: how organizations share the workers. The searches of an organization count when they are admitted,
 * with those that it has open then.
 *
 * The share of an organization is the slots of all workers ÷ the organizations with open searches. A search within it goes
 * before all that are beyond: the only one of its organization first (turn 0), then those that are the second one, and so on.
 * There are about as many of these as slots, so none of them waits for long.
 *
 * Those beyond shares wait in rounds, in each of which every organization gets one search started: the first search of an
 * organization beyond its share waits for the next round, its second one for the round after that. A search keeps its place, and
 * rounds only go on. So no organization waits for more rounds than it has searches open, whatever the others send, and what it
 * sends later overtakes its own earlier searches only where these have fewer beside them.
 */

// BullMQ takes turns up to 2^21. Maintenance lowers the turns of the searches that wait before rounds come to the last one
// (worker/lower-turns.ts).
const turnMax = 2 ** 21 - 1;
/** Turns above this are of searches beyond the share of their organization. */
export const withinShareMax = 2 ** 20;

/** @param options.organizations with open searches. @returns slots for each, which may be less than one. */
export function shareOf({ slots, organizations }: { slots: number; organizations: number }): number {
  return slots / Math.max(1, organizations);
}

/** The turn of a search. @param openSearches of its organization, with this one. @param comingTurn of the search that is next. */
export function turnOf(openSearches: number, { share, comingTurn }: { share: number; comingTurn: number }): number {
  if (openSearches <= share) return Math.min(openSearches - 1, withinShareMax);
  return Math.min(turnMax, Math.max(comingTurn, withinShareMax) + Math.ceil(openSearches - share));
}

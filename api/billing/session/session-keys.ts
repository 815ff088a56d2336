import type { Redis } from "ioredis";

/** Where Redis keeps the sessions of the billing page, and by organization the list of them, so that they can be erased. */

export const sessionKeyOf = (idHash: string) => `session:${idHash}`;

/** A sorted set: the ids of the newest searches that a session made on the playground. It expires with the session. */
export const sessionSearchesOf = (organizationId: string, idHash: string) => `{${organizationId}}:playground:${idHash}`;

/** A sorted set: the hashes of the sessions' ids, by the time at which the session ends at the latest. */
export const sessionListOf = (organizationId: string) => `{${organizationId}}:sessions`;

export interface ListedSession {
  idHash: string;
  endsAt: Date;
}

/** The sessions of an organization that may be open. */
export async function listSessions(redis: Redis, organizationId: string): Promise<ListedSession[]> {
  const list = await redis.zrange(sessionListOf(organizationId), "0", "-1", "WITHSCORES");
  return list.flatMap((idHash, at) => {
    const endsAtMs = Number(list[at + 1]);
    return at % 2 === 0 ? [{ idHash, endsAt: new Date(endsAtMs) }] : [];
  });
}

import type { Redis } from "ioredis";

/** The Redis keys of sessions. Each organization has a list of its sessions, so that they can be erased. */

export const sessionKeyOf = (idHash: string) => `session:${idHash}`;

/** The hash of the token that a one-time code signs in. */
export const signInCodeKeyOf = (codeHash: string) => `session:code:${codeHash}`;

/** A sorted set: the ids of the newest playground searches of a session. It expires with the session. */
export const sessionSearchesOf = (organizationId: string, idHash: string) => `{${organizationId}}:playground:${idHash}`;

/** A sorted set: the hashes of session ids, scored by the time at which the session ends at the latest. */
export const sessionListOf = (organizationId: string) => `{${organizationId}}:sessions`;

/** The sessions of an organization that may be open. */
export async function listSessions(redis: Redis, organizationId: string) {
  const list = await redis.zrange(sessionListOf(organizationId), "0", "-1", "WITHSCORES");
  return list.flatMap((idHash, at) => (at % 2 === 0 ? [{ idHash, endsAt: new Date(Number(list[at + 1])) }] : []));
}

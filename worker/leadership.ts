import type { Redis } from "ioredis";
import { protocolTimes } from "../shared/protocol-times.ts";

/**
 * Elects the worker that does maintenance. Leadership is a lease in Redis: a key with the leader's id and an expiry.
 *
 * - Redis is authoritative. A worker is the leader from the moment at which Redis confirmed the lease, and trusts that for
 *   one step of maintenance.
 * - The leader renews before each step, and within a long one before each page. If it dies or loses Redis, the lease expires after 3 s, and the next worker that
 *   tries becomes the leader. A leader that stops gives the lease back.
 * - Two leaders are possible for a moment: a frozen leader may go on after its lease expired, the renewal is not atomic,
 *   and Redis may lose the key. The lease only saves work. It is safe without it, because every step of maintenance is
 *   decided in Postgres or stores a version that only replaces an older one.
 */

const leaseKey = "maintenance";

/** Takes or renews the lease. @returns whether this worker leads. @throws if Redis does not answer. */
export async function acquireLeadership(redis: Redis, workerId: string): Promise<boolean> {
  if (await redis.set(leaseKey, workerId, "PX", protocolTimes.leaderLeaseMs, "NX")) return true;
  if ((await redis.get(leaseKey)) !== workerId) return false;
  await redis.pexpire(leaseKey, protocolTimes.leaderLeaseMs);
  return true;
}

/** Gives the lease back, so that another worker need not wait for it to expire. */
export async function resignLeadership(redis: Redis, workerId: string): Promise<void> {
  if ((await redis.get(leaseKey)) === workerId) await redis.del(leaseKey);
}

/** The id of this run of Redis. Another one means a restart: data may be lost or old. @throws if Redis does not answer. */
export async function readRedisRunId(redis: Redis): Promise<string> {
  return /^run_id:(\w+)/m.exec(await redis.info("server"))?.[1] ?? "";
}

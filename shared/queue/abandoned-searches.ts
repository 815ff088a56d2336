import type { Redis } from "ioredis";
import { type Log, throttledWarning } from "../log.ts";
import type { RedisConnections } from "../redis/connections.ts";

/**
 * The messages from the APIs to the workers that the caller of a search has hung up. A lost message means only that the
 * search runs on: its place in flight lasts until then, and it is refunded all the same.
 */

const channel = "searches:abandoned";

/** Tells all workers that no caller waits for this search any more. @throws if Redis does not answer. */
export async function announceAbandoned(redis: Redis, requestId: string): Promise<void> {
  await redis.publish(channel, requestId);
}

/** Calls `heard` with each request id that is announced, on a connection of its own, until the process stops. */
export function subscribeToAbandoned(
  { connections, log }: { connections: RedisConnections; log: Log },
  heard: (requestId: string) => void,
): void {
  const connection = connections.openBlocking("worker-abandoned");
  connection.on("message", (_channel: string, requestId: string) => heard(requestId));
  const warn = throttledWarning(log, "cannot hear which searches are abandoned: they run on");
  void connection.subscribe(channel).catch(warn);
}

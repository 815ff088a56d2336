import type { Redis } from "ioredis";
import { throttledWarning } from "../log.ts";
import type { Context } from "../process/context.ts";

/**
 * The messages from the APIs to the workers that the caller of a search has disconnected. A lost message means only that the
 * search runs on: its concurrency slot is taken until then, and it is refunded all the same.
 */

const channel = "searches:disconnected";

/** Tells all workers that no caller waits for this search any more. @throws if Redis does not answer. */
export async function announceDisconnected(redis: Redis, requestId: string): Promise<void> {
  await redis.publish(channel, requestId);
}

/** Calls `heard` with each request id that is announced, on a connection of its own, until the process stops. */
export function subscribeToDisconnected(
  { connections, log }: Pick<Context, "connections" | "log">,
  heard: (requestId: string) => void,
): void {
  const connection = connections.openBlocking("worker-disconnected");
  connection.on("message", (_channel: string, requestId: string) => heard(requestId));
  const warn = throttledWarning(log, "cannot hear which callers disconnected: their searches run on");
  connection.on("ready", () => void connection.subscribe(channel).catch(warn));
}

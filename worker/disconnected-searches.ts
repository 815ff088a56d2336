import { LRUCache } from "lru-cache";
import type { Redis } from "ioredis";
import { InFlightEntries } from "../shared/concurrency/in-flight-entries.ts";
import type { Context } from "../shared/process/context.ts";
import { isLeft } from "../shared/credits/unpaid-calls.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { subscribeToDisconnected } from "../shared/queue/disconnected-searches.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";

const messagesMax = 20_000;

type RunningSearch = Pick<SearchJob, "requestId" | "organizationId">;

/**
 * The searches whose callers have disconnected while a worker had the job. The message may come before this worker has begun
 * with the job, and the job may move here from another worker: so messages are remembered while a search can run.
 */
export class DisconnectedSearches {
  readonly #redis: Redis;
  readonly #messages = new LRUCache<string, true>({ max: messagesMax, ttl: protocolTimes.searchDeadlineMaxMs });
  readonly #running = new InFlightEntries<AbortController>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  noteDisconnect(requestId: string): void {
    this.#messages.set(requestId, true);
    this.#running.get(requestId)?.abort();
  }

  /**
   * The signal of a search that this worker begins with: aborted once its caller has disconnected. Call {@link end} afterwards.
   * @param isRepeated whether another worker had the job: this one may have been started after the message.
   */
  async begin({ requestId, organizationId }: RunningSearch, isRepeated: boolean): Promise<AbortSignal> {
    const controller = this.#running.get(requestId) ?? new AbortController();
    this.#running.set(requestId, controller);
    if (this.#messages.has(requestId)) controller.abort();
    else if (isRepeated && (await isLeft(this.#redis, organizationId, requestId).catch(() => false)))
      this.noteDisconnect(requestId);
    return controller.signal;
  }

  end({ requestId }: Pick<RunningSearch, "requestId">): void {
    this.#running.delete(requestId);
  }
}

export function openDisconnectedSearches(context: Context): DisconnectedSearches {
  const searches = new DisconnectedSearches(context.redis);
  subscribeToDisconnected(context, (requestId) => {
    searches.noteDisconnect(requestId);
    context.log.debug({ requestId }, "the caller of a search disconnected");
  });
  return searches;
}

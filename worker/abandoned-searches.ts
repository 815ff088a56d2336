import { LRUCache } from "lru-cache";
import type { Redis } from "ioredis";
import type { Context } from "../shared/context.ts";
import { isCountedAbandoned } from "../shared/credits/abandoned-searches.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { subscribeToAbandoned } from "../shared/queue/abandoned-searches.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";

const rememberedMax = 20_000;

/**
 * The searches whose callers have hung up while a worker had the job. The message may come before this worker has begun
 * with the job, and the job may move here from another worker: so messages are remembered while a search can run.
 */
export class AbandonedSearches {
  readonly #redis: Redis;
  readonly #searches = new LRUCache<string, AbortController>({
    max: rememberedMax,
    ttl: protocolTimes.searchDeadlineMaxMs,
  });

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  abandon(requestId: string): void {
    this.#of(requestId).abort();
  }

  /**
   * The signal of a search that this worker begins with: aborted once its caller has hung up. Call {@link end} afterwards.
   * @param isRepeated whether another worker had the job: this one may have been started after the message.
   */
  async begin({ requestId, organizationId }: SearchJob, isRepeated: boolean): Promise<AbortSignal> {
    if (isRepeated && (await isCountedAbandoned(this.#redis, organizationId, requestId).catch(() => false)))
      this.abandon(requestId);
    return this.#of(requestId).signal;
  }

  end({ requestId }: SearchJob): void {
    if (!this.#of(requestId).signal.aborted) this.#searches.delete(requestId);
  }

  #of(requestId: string): AbortController {
    const known = this.#searches.get(requestId);
    if (known) return known;
    const added = new AbortController();
    this.#searches.set(requestId, added);
    return added;
  }
}

export function openAbandonedSearches(context: Context): AbandonedSearches {
  const searches = new AbandonedSearches(context.redis);
  subscribeToAbandoned(context, (requestId) => {
    searches.abandon(requestId);
    context.log.debug({ requestId }, "the caller of a search hung up");
  });
  return searches;
}

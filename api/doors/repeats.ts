import type { Redis } from "ioredis";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { readIdempotencyState } from "../../shared/credits/holds.ts";
import type { Database } from "../../shared/database/pool.ts";
import { timeOfId } from "../../shared/ids.ts";
import type { Metrics } from "../../shared/metrics.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { type Query, queryFingerprint } from "../../shared/query/query.ts";
import { orPostgresUnavailable, orRedisUnavailable } from "../datastore-unavailable.ts";
import { PaidAnswers } from "../search/idempotency.ts";
import { sha256 } from "../search/search-request.ts";

/** For so long from its start, a repeat of a search joins it or gets its answer. */
const repeatMs = 60_000;
/** Requests for one search that begin within this time agree on a window, however the clocks of their APIs differ. */
const agreementMs = 10_000;

/**
 * The idempotency keys of searches at doors, whose clients send none. A key is made of the token, the door, the query and a window
 * of a minute, so that a client's retry finds the search that it repeats, in Redis while that runs and in Postgres once it was paid.
 *
 * A repeat within a minute of the start is in the same window or in the next one, so it also looks for the key of the window before.
 * It looks for the one before that as well: a repeat that joins a search takes its key over if the search fails, and so may have
 * begun in a later window than that of its key. Two requests on either side of the end of a window agree on one in Redis. If
 * Redis loses that, or the record of a running search, the key of the window itself is the same: Postgres charges it once.
 */
export class Repeats {
  readonly #redis: Redis;
  readonly #paidAnswers: PaidAnswers;
  readonly #clock: { now: () => number };

  constructor(
    { redis, database, metrics }: { redis: Redis; database: Database; metrics: Metrics },
    clock: { now: () => number } = Date,
  ) {
    this.#clock = clock;
    this.#redis = redis;
    this.#paidAnswers = new PaidAnswers({ database, metrics });
  }

  /** The key of a search: that of the same search if it began in the last minute, or else a new one. */
  async keyOf({ organizationId, tokenId }: Caller, door: string, query: Query): Promise<string> {
    // A caller cannot send such a key, because a header allows no spaces in it.
    const search = `door ${door} ${tokenId} ${queryFingerprint(query)}`;
    const now = this.#clock.now();
    const window = await orRedisUnavailable(this.#agreeOnWindow(organizationId, search, Math.floor(now / repeatMs)));
    const keys = [window, window - 1, window - 2].map((at) => `${search} ${at}`);
    const starts = await Promise.all(keys.map((key) => this.#startOf(organizationId, sha256(key))));
    const found = starts.findIndex((startedAt) => startedAt !== undefined && now - startedAt.getTime() <= repeatMs);
    return keys[Math.max(found, 0)] ?? search;
  }

  async #agreeOnWindow(organizationId: string, search: string, window: number): Promise<number> {
    const key = keysOf(organizationId).doorWindow(sha256(search));
    const earlier = await this.#redis.set(key, window, "PX", agreementMs, "NX", "GET");
    return Number(earlier ?? window);
  }

  /** When the search under a key began that runs or was paid; undefined if there is none. */
  async #startOf(organizationId: string, hash: string): Promise<Date | undefined> {
    const [runs, paid] = await Promise.all([
      orRedisUnavailable(readIdempotencyState(this.#redis, organizationId, hash)),
      orPostgresUnavailable(this.#paidAnswers.findKey({ organizationId, hash })),
    ]);
    const requestId = paid?.requestId ?? ("requestId" in runs ? runs.requestId : undefined);
    return requestId === undefined ? undefined : timeOfId(requestId);
  }
}

import { LRUCache } from "lru-cache";
import { withTimeout } from "../shared/concurrency/with-timeout.ts";
import type { Caller } from "../shared/organizations/organizations.ts";
import type { TokenLookups } from "./token-lookups.ts";

// Counted from the start of the lookup: a revocation must take effect within 2 s, even if its announcement is lost, and the
// refusal that shows it comes late.
const cacheTtlMs = 1_500;
/** How long a request waits for its lookup, and how long Postgres may work on one. */
export const lookupTimeoutMs = 1_500;
const callersCachedMax = 10_000;
/** Invalid tokens have a cache of their own: however many come, they displace no caller. */
const invalidCachedMax = 10_000;
/** A token that was used within this time is in use. The last use that Postgres has of it may be as much too late. */
const inUseMs = 10_000;
/** The most that are renewed, those used last: one statement. */
const renewedMax = 500;

/**
 * The callers of tokens, by the tokens' hashes in hexadecimal. What a lookup found is remembered for `cacheTtlMs`. Concurrent
 * requests with one token share one lookup, and a token in use can be looked up anew before its next request.
 */
export class IdentityCache {
  readonly #lookups: Pick<TokenLookups, "find">;
  readonly #clock: { now: () => number };
  readonly #callers: LRUCache<string, Caller>;
  readonly #invalid: LRUCache<string, true>;
  /** When each of the tokens used last was used. */
  readonly #usedAtMs = new LRUCache<string, number>({ max: renewedMax });
  #underWay = new Map<string, Promise<Caller | undefined>>();

  constructor(lookups: Pick<TokenLookups, "find">, clock: { now: () => number } = performance) {
    this.#lookups = lookups;
    this.#clock = clock;
    // The resolution is that of the clock. Otherwise the cache would set a timer in each millisecond in which it is asked.
    const expiry = { ttl: cacheTtlMs, ttlResolution: 0, perf: clock };
    this.#callers = new LRUCache({ max: callersCachedMax, ...expiry });
    this.#invalid = new LRUCache({ max: invalidCachedMax, ...expiry });
  }

  /** Forgets everything. A lookup under way still answers the requests that wait for it. It is not remembered. */
  clear(): void {
    this.#callers.clear();
    this.#invalid.clear();
    this.#underWay = new Map();
  }

  /** @returns undefined for a token that is not valid. @throws what the lookup throws, and if it takes too long. */
  async find(tokenHash: string): Promise<Caller | undefined> {
    const known = this.#callers.get(tokenHash);
    if (!known && this.#invalid.has(tokenHash)) return undefined;
    const caller = known ?? (await this.#sharedLookUp(tokenHash));
    if (caller) this.#usedAtMs.set(tokenHash, this.#clock.now());
    return caller;
  }

  /** Looks the tokens in use up anew, in one statement. Where that fails, the next request with a token looks it up. */
  async renew(): Promise<void> {
    const sinceMs = this.#clock.now() - inUseMs;
    const inUse = [...this.#usedAtMs].filter(([, usedAtMs]) => usedAtMs >= sinceMs);
    await Promise.allSettled(inUse.map(([tokenHash]) => this.#sharedLookUp(tokenHash)));
  }

  #sharedLookUp(tokenHash: string): Promise<Caller | undefined> {
    const underWay = this.#underWay;
    const lookup = underWay.get(tokenHash) ?? this.#lookUp(tokenHash).finally(() => underWay.delete(tokenHash));
    underWay.set(tokenHash, lookup);
    return lookup;
  }

  async #lookUp(tokenHash: string): Promise<Caller | undefined> {
    const startedAtMs = this.#clock.now();
    const underWay = this.#underWay;
    const caller = await withTimeout(lookupTimeoutMs, this.#lookups.find(tokenHash));
    if (underWay !== this.#underWay) return caller;
    const ttl = Math.max(1, cacheTtlMs - (this.#clock.now() - startedAtMs));
    if (caller) {
      this.#callers.set(tokenHash, caller, { ttl });
      return caller;
    }
    this.#invalid.set(tokenHash, true, { ttl });
    this.#callers.delete(tokenHash);
    return undefined;
  }
}

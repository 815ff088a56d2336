import { LRUCache } from "lru-cache";
import { BatchedLookup } from "../shared/concurrency/batcher.ts";
import { withTimeout } from "../shared/concurrency/wait-for.ts";
import type { Metrics } from "../shared/metrics.ts";
import { type Caller, readCaller } from "../shared/organizations/organizations.ts";
import { unavailable } from "./errors.ts";

// Counted from the start of the lookup: a revocation must take effect within 2 s, even if its announcement is lost, and the
// lookup that finds it is slow.
const cacheTtlMs = 1_500;
/** How long a request waits for its lookup, and how long Postgres may work on one. */
export const lookupTimeoutMs = 1_500;
const callersCachedMax = 10_000;
/** Invalid tokens have a cache of their own: however many come, they displace no caller. */
const invalidCachedMax = 10_000;
/** A token that was used within this time is in use. The last use in Postgres may be late by as much. */
const inUseMs = 10_000;
/** At most so many tokens are renewed, the most recently used ones, in one statement. */
const renewedMax = 500;

/** Connections to Postgres that the lanes take at the same time. */
export const lookupConnections = 2;

const batchMax = 500;
const latelyValidMax = 10_000;
/** Lookups of other tokens that are under way or wait. Beyond it they are refused. */
const newcomersMax = 1_000;
/** After each batch of other tokens. A flood of made-up tokens is looked up at this pace, many in one statement. */
const newcomerPauseMs = 20;

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
    // As coarse as the clock. Otherwise the cache would set a timer in each millisecond with a lookup.
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

type Lane = "known" | "new";

/**
 * Looks tokens up in Postgres, many in one statement. There are two lanes with one connection each: tokens that were valid
 * lately, and all others. A caller with made-up tokens shares a lane with other newcomers, and never delays a known caller.
 */
export class TokenLookups {
  readonly #latelyValid = new LRUCache<string, true>({ max: latelyValidMax });
  readonly #lanes: Record<Lane, BatchedLookup<string, unknown>>;
  readonly #count: Metrics["tokenLookups"];
  #newcomers = 0;

  /** @param parts.findCallers looks up the tokens of one batch by their hashes: a row for each valid one. */
  constructor(parts: {
    findCallers: (tokenHashes: readonly string[]) => Promise<Map<string, unknown>>;
    metrics: Pick<Metrics, "tokenLookups">;
  }) {
    this.#count = parts.metrics.tokenLookups;
    const lane = {
      sizeMax: batchMax,
      concurrency: 1,
      nameOf: (tokenHash: string) => tokenHash,
      read: parts.findCallers,
    };
    this.#lanes = { known: new BatchedLookup(lane), new: new BatchedLookup({ ...lane, pauseMs: newcomerPauseMs }) };
  }

  /**
   * Finds the caller of a token by its hash in hexadecimal; undefined if the token is unknown, expired or revoked.
   * @throws {CallerError} `unavailable`, reason `token_lookups_full`, if too many new tokens wait. @throws what the lookup throws.
   */
  async find(tokenHash: string): Promise<Caller | undefined> {
    const lane = this.#latelyValid.get(tokenHash) ? "known" : "new";
    if (lane === "known") return this.#find(lane, tokenHash);
    if (this.#newcomers >= newcomersMax) {
      this.#count.inc({ lane, outcome: "refused" });
      throw unavailable("token_lookups_full");
    }
    this.#newcomers += 1;
    return this.#find(lane, tokenHash).finally(() => {
      this.#newcomers -= 1;
    });
  }

  async #find(lane: Lane, tokenHash: string): Promise<Caller | undefined> {
    try {
      const row = await this.#lanes[lane].find(tokenHash);
      // A row that cannot be read fails its own lookup, and no other of the batch.
      const caller = row === undefined ? undefined : readCaller(row);
      if (caller) this.#latelyValid.set(tokenHash, true);
      else this.#latelyValid.delete(tokenHash);
      this.#count.inc({ lane, outcome: caller ? "valid" : "invalid" });
      return caller;
    } catch (error) {
      this.#count.inc({ lane, outcome: "failed" });
      throw error;
    }
  }
}

import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { withTimeout } from "../shared/concurrency/with-timeout.ts";
import type { Context } from "../shared/context.ts";
import { openDatabase } from "../shared/database/pool.ts";
import { CallerError } from "../shared/errors.ts";
import { type Caller, findCallers, identityChannel } from "../shared/organizations/organizations.ts";
import { hashToken, isTokenShaped } from "../shared/organizations/tokens.ts";
import { unavailable } from "./errors.ts";
import { readBearerToken } from "./http/bearer-token.ts";
import { lookupConnections, TokenLookups } from "./token-lookups.ts";

// Counted from the start of the lookup: a revocation must take effect within 2 s, even if its announcement is lost, and the
// refusal that shows it comes late.
const cacheTtlMs = 1_500;
/** How long a request waits for its lookup, and how long Postgres may work on one. */
const lookupTimeoutMs = 1_500;
/** Refusals a second that are answered at once. Each further one waits, which bounds how fast a connection can try tokens. */
const promptRefusalsMax = 100;
const refusalDelayMs = 250;
const callersCachedMax = 10_000;
/** Invalid tokens have a cache of their own: however many come, they displace no caller. */
const invalidCachedMax = 10_000;

/**
 * Finds the caller of a request by its bearer token.
 * @throws {CallerError} `unauthenticated`, the same for every reason; `unavailable` if Postgres does not answer, or if too
 * many tokens wait that this process has not seen lately.
 */
export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

/** Finds a caller by the hash of a token, in hexadecimal. @throws the same as {@link Authenticate}. */
export type FindByTokenHash = (tokenHash: string) => Promise<Caller>;

type AuthenticationParts = Pick<Context, "config" | "connections" | "log" | "metrics" | "shutdown">;

/**
 * Authentication by token. The operator's commands announce changes over Redis, which empties the caches at once. A token
 * with a wrong checksum costs no lookup. When refusals come by the hundred they are slow, all of them alike, so that a flood of
 * tokens cannot take the event loop away from callers.
 */
export function openAuthentication(parts: AuthenticationParts): {
  authenticate: Authenticate;
  findByTokenHash: FindByTokenHash;
} {
  // Connections that nothing else uses: no flood of tokens delays a settlement, and no settlement a caller.
  const database = openDatabase({
    url: parts.config.DATABASE_URL,
    name: "api-identity",
    isPooled: parts.config.DATABASE_POOLER === "transaction",
    sizeMax: lookupConnections,
    statementTimeoutMs: lookupTimeoutMs,
    ...parts,
  });
  const lookups = new TokenLookups({ findCallers: (hashes) => findCallers(database, hashes), metrics: parts.metrics });
  const identities = new IdentityCache(lookups);
  const changes = parts.connections.openBlocking("identity");
  changes.on("message", () => identities.clear());
  changes.on("ready", () => void changes.subscribe(identityChannel).catch(() => identities.clear()));

  const findByTokenHash: FindByTokenHash = async (tokenHash) => {
    const caller = await identities.find(tokenHash).catch((error: unknown) => {
      // A malformed row is a defect that a retry cannot fix.
      if (error instanceof z.ZodError || error instanceof CallerError) throw error;
      throw unavailable("postgres_unreachable");
    });
    if (!caller) throw new CallerError("unauthenticated");
    return caller;
  };
  const refusals = new RefusalRate();
  const authenticate: Authenticate = async (request) => {
    const token = readBearerToken(request);
    try {
      if (!token || !isTokenShaped(token)) throw new CallerError("unauthenticated");
      return await findByTokenHash(hashToken(token).toString("hex"));
    } catch (error) {
      if (refusals.count() > promptRefusalsMax) await sleep(refusalDelayMs);
      throw error;
    }
  };
  return { authenticate, findByTokenHash };
}

/** Counts the refusals of the current second. */
class RefusalRate {
  #second = 0;
  #refusals = 0;

  /** @returns how many there were in this second, with this one. */
  count(): number {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#refusals = 0;
    this.#second = second;
    this.#refusals += 1;
    return this.#refusals;
  }
}

/** Remembers for `cacheTtlMs` what a token's lookup found. Concurrent requests with one token share one lookup. */
class IdentityCache {
  readonly #lookups: TokenLookups;
  readonly #callers = new LRUCache<string, Caller>({ max: callersCachedMax, ttl: cacheTtlMs });
  readonly #invalid = new LRUCache<string, true>({ max: invalidCachedMax, ttl: cacheTtlMs });
  #underWay = new Map<string, Promise<Caller | undefined>>();

  constructor(lookups: TokenLookups) {
    this.#lookups = lookups;
  }

  /** Forgets everything. A lookup under way still answers the requests that wait for it. It is not remembered. */
  clear(): void {
    this.#callers.clear();
    this.#invalid.clear();
    this.#underWay = new Map();
  }

  async find(tokenHash: string): Promise<Caller | undefined> {
    const caller = this.#callers.get(tokenHash);
    if (caller || this.#invalid.has(tokenHash)) return caller;
    const underWay = this.#underWay;
    const lookup = underWay.get(tokenHash) ?? this.#lookUp(tokenHash).finally(() => underWay.delete(tokenHash));
    underWay.set(tokenHash, lookup);
    return lookup;
  }

  async #lookUp(tokenHash: string): Promise<Caller | undefined> {
    const startedAtMs = performance.now();
    const underWay = this.#underWay;
    const caller = await withTimeout(lookupTimeoutMs, this.#lookups.find(tokenHash));
    if (underWay !== this.#underWay) return caller;
    const ttl = Math.max(1, cacheTtlMs - (performance.now() - startedAtMs));
    if (caller) this.#callers.set(tokenHash, caller, { ttl });
    else this.#invalid.set(tokenHash, true, { ttl });
    return caller;
  }
}

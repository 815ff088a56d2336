import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { withTimeout } from "../shared/concurrency/with-timeout.ts";
import type { Config } from "../shared/config.ts";
import type { Database } from "../shared/database/pool.ts";
import { CallerError } from "../shared/errors.ts";
import { type Caller, findCaller, identityChannel } from "../shared/organizations/organizations.ts";
import type { Log } from "../shared/log.ts";
import type { Shutdown } from "../shared/process/shutdown.ts";
import { hashToken, isTokenShaped } from "../shared/organizations/tokens.ts";
import { openBlocking } from "../shared/redis/connect.ts";
import { unavailable } from "./errors.ts";
import { readBearerToken } from "./http/bearer-token.ts";

// Counted from the start of the lookup: a revocation must take effect within 2 s, even if its announcement is lost.
const cacheTtlMs = 1_800;
const lookupTimeoutMs = 1_500;
const cachedMax = 10_000;

/**
 * Finds the caller of a request by its bearer token.
 * @throws {CallerError} `unauthenticated`, the same for every reason; `unavailable` if Postgres does not answer.
 */
export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

/** Finds a caller by the hash of a token, in hexadecimal. @throws the same as {@link Authenticate}. */
export type FindByTokenHash = (tokenHash: string) => Promise<Caller>;

interface AuthenticationParts {
  config: Config;
  database: Database;
  log: Log;
  shutdown: Shutdown;
}

/**
 * Authentication by token, cached for `cacheTtlMs`. The operator's commands announce changes over Redis, which empties the
 * cache at once. Concurrent requests with one token share one lookup, and a token with a wrong checksum costs none. Cache
 * keys are tokens or hashes, so a token is hashed only for its lookup.
 */
export function openAuthentication(parts: AuthenticationParts): {
  authenticate: Authenticate;
  findByTokenHash: FindByTokenHash;
} {
  const { config, database, log, shutdown } = parts;
  const cache = new LRUCache<string, { caller: Caller | undefined }>({
    max: cachedMax,
    // A lookup that runs while the cache is emptied still answers the requests that wait for it. It is not cached.
    ignoreFetchAbort: true,
    fetchMethod: async (tokenOrHash, _stale, { options }) => {
      const startedAtMs = performance.now();
      const caller = await withTimeout(lookupTimeoutMs, findCaller(database, hashOf(tokenOrHash)));
      options.ttl = Math.max(1, cacheTtlMs - (performance.now() - startedAtMs));
      return { caller };
    },
  });
  const changes = openBlocking({ url: config.REDIS_URL, name: "identity", log, shutdown });
  changes.on("message", () => cache.clear());
  changes.on("ready", () => void changes.subscribe(identityChannel).catch(() => cache.clear()));

  const find = async (tokenOrHash: string) => {
    const found = await cache.fetch(tokenOrHash).catch((error: unknown) => {
      // A malformed row is a defect that a retry cannot fix.
      if (error instanceof z.ZodError) throw error;
      throw unavailable("postgres_unreachable");
    });
    if (!found) throw unavailable("postgres_unreachable");
    if (!found.caller) throw new CallerError("unauthenticated");
    return found.caller;
  };
  const authenticate: Authenticate = async (request) => {
    const token = readBearerToken(request);
    if (!token || !isTokenShaped(token)) throw new CallerError("unauthenticated");
    return find(token);
  };
  return { authenticate, findByTokenHash: find };
}

// A hash in hexadecimal never has the form of a token.
const hashOf = (tokenOrHash: string) =>
  isTokenShaped(tokenOrHash) ? hashToken(tokenOrHash) : Buffer.from(tokenOrHash, "hex");

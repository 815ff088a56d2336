import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { withTimeout } from "../shared/concurrency/with-timeout.ts";
import type { Context } from "../shared/context.ts";
import { CallerError } from "../shared/errors.ts";
import { type Caller, findCaller, identityChannel } from "../shared/organizations/organizations.ts";
import { hashToken, isTokenShaped } from "../shared/organizations/tokens.ts";
import { openBlocking } from "../shared/redis/connect.ts";
import { unavailable } from "./errors.ts";
import { readBearerToken } from "./http/bearer-token.ts";

// Counted from the beginning of the look-up, so that nothing known is ever older than the 2 s that a revocation may take.
const knownMs = 1_800;
const lookUpMsMax = 1_500;
const knownMax = 10_000;

/** @throws {CallerError} `unauthenticated`, the same for every reason; `unavailable` where Postgres cannot be asked. */
export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

/** The same for a token of which only the hash is known, in hexadecimal; it throws the same. */
export type FindByTokenHash = (tokenHash: string) => Promise<Caller>;

/**
 * Token to organization. What was found is kept for a moment, forgotten at once when the operator's commands announce a
 * change, and looked up once however many requests wait for it. A token without the right checksum costs no look-up.
 * It is known under itself, or under its hash to those who have no more: one is hashed only when it is looked up.
 */
export function openAuthentication(context: Context): { authenticate: Authenticate; findByTokenHash: FindByTokenHash } {
  const { config, database, log, shutdown } = context;
  const known = new LRUCache<string, { caller: Caller | undefined }>({
    max: knownMax,
    // A look-up under way when everything is forgotten still answers those who wait for it, and is not kept.
    ignoreFetchAbort: true,
    fetchMethod: async (tokenOrHash, _stale, { options }) => {
      const beganAtMs = performance.now();
      const caller = await withTimeout(lookUpMsMax, findCaller(database, hashOf(tokenOrHash)));
      options.ttl = Math.max(1, knownMs - (performance.now() - beganAtMs));
      return { caller };
    },
  });
  const changes = openBlocking({ url: config.REDIS_URL, name: "identity", log, shutdown });
  changes.on("message", () => known.clear());
  changes.on("ready", () => void changes.subscribe(identityChannel).catch(() => known.clear()));

  const find = async (tokenOrHash: string) => {
    const found = await known.fetch(tokenOrHash).catch((error: unknown) => {
      // A row that cannot be read will not be readable a second later either.
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

// No hash in hexadecimal looks like a token.
const hashOf = (tokenOrHash: string) =>
  isTokenShaped(tokenOrHash) ? hashToken(tokenOrHash) : Buffer.from(tokenOrHash, "hex");

import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/process/context.ts";
import { openDatabase } from "../shared/database/pool.ts";
import { CallerError } from "../shared/errors.ts";
import { type Caller, findCallers, identityChannel } from "../shared/organizations/organizations.ts";
import { hashToken, isTokenShaped } from "./tokens/tokens.ts";
import { orPostgresUnavailable } from "./datastore-unavailable.ts";
import { readBearerToken } from "./http/bearer-token.ts";
import { IdentityCache, lookupTimeoutMs } from "./identity-cache.ts";
import { lookupConnections, TokenLookups } from "./token-lookups.ts";

const renewEveryMs = 1_000;
/** Refusals a second that are answered at once. Each further one waits, which bounds how fast a connection can try tokens. */
const promptRefusalsMax = 100;
const refusalDelayMs = 250;

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
  runPeriodically({
    name: "identities",
    pauseMs: renewEveryMs,
    pausesFirst: true,
    run: () => identities.renew(),
    ...parts,
  });
  const changes = parts.connections.openBlocking("identity");
  changes.on("message", () => identities.clear());
  changes.on("ready", () => void changes.subscribe(identityChannel).catch(() => identities.clear()));

  const findByTokenHash: FindByTokenHash = async (tokenHash) => {
    const caller = await orPostgresUnavailable(identities.find(tokenHash));
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

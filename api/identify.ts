import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Plan } from "../shared/credits/plans.ts";
import { databaseOf, openDatabase } from "../shared/database/pool.ts";
import { CallerError, type ErrorCode, errors } from "../shared/errors.ts";
import { type Caller, findCallers, identityChannel, type Scope } from "../shared/organizations/organizations.ts";
import type { Context } from "../shared/process/context.ts";
import { orPostgresUnavailable } from "./datastore-unavailable.ts";
import { RateLimited } from "./errors.ts";
import { readBearerToken } from "./http/request-headers.ts";
import { type LogFields, requestScopeOf } from "./http/request-scope.ts";
import { IdentityCache, lookupConnections, lookupTimeoutMs, TokenLookups } from "./identity-cache.ts";
import { hashToken, isTokenShaped } from "./tokens/tokens.ts";

const renewEveryMs = 1_000;
/** Refusals a second that are answered at once. Each further one waits, which bounds how fast a connection can try tokens. */
const promptRefusalsMax = 100;
const refusalDelayMs = 250;
// Requests that get nothing of the plan's rate window may be this many times as many as its requests.
const windowFactor = 10;
/** A longer window of a plan would refuse an organization for hours after a top-up. */
const refusedWindowSecondsMax = 60;
/** A plan of a few requests a minute may use those of its whole window within one. */
const requestsPerWindowMin = 60;
/** A request counts once more for each of these bytes of its answer: a replay is more work the longer it is. */
const bytesPerCount = 64 * 1024;
const organizationsMax = 10_000;

// Object.keys returns strings.
const codes = Object.keys(errors) as ErrorCode[];
const ownFailures = new Set<string>(codes.filter((code) => errors[code].status >= 500 && code !== "not_implemented"));

/**
 * Finds the caller of a request to an operation, for the handler and for the log.
 * @param scope what the operation needs; `any` where a later step asks for it, as each MCP tool does.
 * @throws {CallerError} the errors of {@link Authenticate}, `rate_limited` after too many refused requests, and those of
 * {@link requireScope}.
 */
export type Identify = (
  request: IncomingMessage,
  response: ServerResponse,
  scope: Scope | "any",
  sent?: SentToken,
) => Promise<Caller>;

export function openIdentify(authenticate: Authenticate): Identify {
  const refused = new RefusedRequests();
  return async (request, response, scope, sent) => {
    const { logFields } = requestScopeOf(response);
    const caller = await authenticate(request, sent);
    const isFoundAnew = logFields.organizationId !== undefined; // Behind a late body. The request counts once.
    logCaller(response, caller);
    refused.check(caller);
    const { socket } = request;
    const sentBefore = socket.bytesWritten;
    if (!isFoundAnew)
      response.once("close", () => {
        if (!isServed(logFields)) refused.count(caller, socket.bytesWritten - sentBefore);
      });
    if (scope !== "any") requireScope(caller, scope);
    return caller;
  };
}

/** @throws {CallerError} `unauthenticated` with the reason `scope` if the caller's token lacks the scope. */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (!scopes.includes(scope)) throw new CallerError("unauthenticated", { reason: "scope", scope });
}

/** Adds the caller to the log line of a request. */
export function logCaller(response: ServerResponse, { organizationId, tokenId }: Caller): void {
  Object.assign(requestScopeOf(response).logFields, { organizationId, tokenId });
}

/** Whether a request got what it asked for, and took a request of the rate window, or failed because of this service. */
function isServed({ outcome = "", reason }: LogFields): boolean {
  // Only an organization beyond its share gets a queue that is too long.
  return outcome === "answered" || (ownFailures.has(outcome) && reason !== "queue_too_long");
}

/** The token that a request sent elsewhere than in the header Authorization, if any. */
export interface SentToken {
  token: string | undefined;
}

/**
 * Finds the caller of a request by its token.
 * @throws {CallerError} `unauthenticated`, the same for every reason; `unavailable` if Postgres does not answer, or if too
 * many tokens wait that this process has not seen lately.
 */
type Authenticate = (request: IncomingMessage, sent?: SentToken) => Promise<Caller>;

/** Finds a caller by the hash of a token, in hexadecimal. @throws the same as {@link Authenticate}. */
export type FindByTokenHash = (tokenHash: string) => Promise<Caller>;

type AuthenticationParts = Pick<Context, "config" | "connections" | "log" | "metrics" | "shutdown">;

/**
 * Authentication by token. The operator's commands announce changes over Redis, which empties the caches at once. A token
 * with a wrong checksum costs no lookup. Beyond a hundred refusals a second every further one is delayed, so that a flood of
 * tokens cannot take the event loop away from callers.
 */
export function openAuthentication(parts: AuthenticationParts): {
  authenticate: Authenticate;
  findByTokenHash: FindByTokenHash;
} {
  // Connections that nothing else uses: no flood of tokens delays a settlement, and no settlement a caller.
  const database = openDatabase({
    ...databaseOf(parts.config),
    name: "api-identity",
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
  const authenticate: Authenticate = async (request, { token } = { token: readBearerToken(request) }) => {
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

interface Window {
  endsAtMs: number;
  requests: number;
}

/**
 * A window per organization, in this process, for requests that take nothing of the plan's rate window: refused ones, replays,
 * and MCP messages that call no tool. Each costs work, so further ones are refused without asking Redis or Postgres.
 */
class RefusedRequests {
  readonly #windows = new LRUCache<string, Window>({ max: organizationsMax });

  /** @throws {RateLimited} if the organization's window is full. */
  check({ organizationId, plan }: Caller): void {
    const window = this.#windows.get(organizationId);
    const { limit, windowSeconds } = refusedTermsOf(plan);
    const leftMs = window ? Math.ceil(window.endsAtMs - performance.now()) : 0;
    if (!window || window.requests < limit || leftMs <= 0) return;
    throw RateLimited.byBound({ reason: "refused", retryAfterMs: leftMs, limit, windowSeconds }, plan);
  }

  /** Counts a request by the bytes of its answer. The first one begins a window. */
  count({ organizationId, plan }: Caller, answerBytes: number): void {
    const requests = 1 + Math.floor(answerBytes / bytesPerCount);
    const nowMs = performance.now();
    const window = this.#windows.get(organizationId);
    if (window && window.endsAtMs > nowMs) window.requests += requests;
    else this.#windows.set(organizationId, { endsAtMs: nowMs + refusedTermsOf(plan).windowSeconds * 1_000, requests });
  }
}

/** The window for refused requests: that of the plan, or of a longer one a minute with its part of the requests. */
function refusedTermsOf({ windowLimit, windowSeconds }: Plan): { limit: number; windowSeconds: number } {
  const seconds = Math.min(windowSeconds, refusedWindowSecondsMax);
  const part = Math.ceil((windowLimit * seconds) / windowSeconds);
  return { limit: windowFactor * Math.min(windowLimit, Math.max(part, requestsPerWindowMin)), windowSeconds: seconds };
}

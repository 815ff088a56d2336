import type { IncomingMessage, ServerResponse } from "node:http";
import { CallerError, type ErrorCode, errors } from "../shared/errors.ts";
import type { Caller } from "../shared/organizations/organizations.ts";
import type { Scope } from "../shared/organizations/scopes.ts";
import type { Authenticate, FindByTokenHash } from "./authenticate.ts";
import { requestScopeOf } from "./http/request-scope.ts";
import type { RefusedRequests } from "./refused-requests.ts";

/**
 * Finds the caller of a request to an operation, for the handler and for the log.
 * @param scope what the operation needs; `any` where a later step asks for it, as each MCP tool does.
 * @throws {CallerError} the errors of {@link Authenticate}, `rate_limited` after too many refused requests, and those of
 * {@link requireScope}.
 */
export type Identify = (request: IncomingMessage, response: ServerResponse, scope: Scope | "any") => Promise<Caller>;

export function openIdentify(parts: { authenticate: Authenticate; refused: RefusedRequests }): Identify {
  const { authenticate, refused } = parts;
  return async (request, response, scope) => {
    const { logFields } = requestScopeOf(response);
    const caller = await authenticate(request);
    logCaller(response, caller);
    refused.check(caller);
    response.once("close", () => {
      if (!isServed(logFields.outcome)) refused.count(caller);
    });
    if (scope !== "any") requireScope(caller, scope);
    return caller;
  };
}

/**
 * Finds the caller of a request that has the hash of a token, in hexadecimal, for the handler and for the log.
 * @throws {CallerError} the errors of {@link Authenticate} and {@link requireScope}.
 */
export type IdentifyByHash = (tokenHash: string, response: ServerResponse, scope: Scope) => Promise<Caller>;

export function openIdentifyByHash(findByTokenHash: FindByTokenHash): IdentifyByHash {
  return async (tokenHash, response, scope) => {
    const caller = await findByTokenHash(tokenHash);
    logCaller(response, caller);
    requireScope(caller, scope);
    return caller;
  };
}

/** @throws {CallerError} `unauthenticated` with the reason `scope` if the caller's token lacks the scope. */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (!scopes.includes(scope)) throw new CallerError("unauthenticated", { reason: "scope", scope });
}

function logCaller(response: ServerResponse, { organizationId, tokenId }: Caller): void {
  Object.assign(requestScopeOf(response).logFields, { organizationId, tokenId });
}

/** Whether a request got what it asked for, and took a request of the rate window, or failed because of this service. */
function isServed(outcome: string | undefined): boolean {
  return outcome === "answered" || (outcome !== undefined && ownFailures.has(outcome));
}

// Object.keys returns strings.
const codes = Object.keys(errors) as ErrorCode[];
const ownFailures = new Set<string>(codes.filter((code) => errors[code].status >= 500 && code !== "not_implemented"));

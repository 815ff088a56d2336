import type { IncomingMessage, ServerResponse } from "node:http";
import { type ErrorCode, errors } from "../shared/errors.ts";
import type { Caller } from "../shared/organizations/organizations.ts";
import type { Authenticate } from "./authenticate.ts";
import { requestScopeOf } from "./http/request-scope.ts";
import type { RefusedRequests } from "./refused-requests.ts";

/**
 * Finds the caller of a request to an operation, for the handler and for the log.
 * @throws {CallerError} the errors of {@link Authenticate}, and `rate_limited` after too many refused requests.
 */
export type Identify = (request: IncomingMessage, response: ServerResponse) => Promise<Caller>;

export function openIdentify(parts: { authenticate: Authenticate; refused: RefusedRequests }): Identify {
  const { authenticate, refused } = parts;
  return async (request, response) => {
    const { logFields } = requestScopeOf(response);
    const caller = await authenticate(request);
    logFields.organizationId = caller.organizationId;
    logFields.tokenId = caller.tokenId;
    refused.check(caller);
    response.once("close", () => {
      if (!isServed(logFields.outcome)) refused.count(caller);
    });
    return caller;
  };
}

/** Whether a request got what it asked for, and took a request of the rate window, or failed because of this service. */
function isServed(outcome: string | undefined): boolean {
  return outcome === "answered" || (outcome !== undefined && ownFailures.has(outcome));
}

// Object.keys returns strings.
const codes = Object.keys(errors) as ErrorCode[];
const ownFailures = new Set<string>(codes.filter((code) => errors[code].status >= 500 && code !== "not_implemented"));

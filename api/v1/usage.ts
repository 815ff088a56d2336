import type { Request, Response } from "express";
import type { Log } from "../../shared/log.ts";
import type { Authenticate } from "../authenticate.ts";
import { setRateLimitHeaders } from "../http/rate-limit-headers.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import { sendJson } from "../http/send-json.ts";
import { type ReadUsage, serializeUsage, toUsageError } from "../read-usage.ts";

export interface UsageHandlerParts {
  authenticate: Authenticate;
  readUsage: ReadUsage;
  log: Log;
}

/** GET /v1/usage */
export function handleUsage({ authenticate, readUsage, log }: UsageHandlerParts) {
  return async (request: Request, response: Response) => {
    const { requestId, logFields } = requestScopeOf(response);
    try {
      const caller = await authenticate(request);
      logFields.organizationId = caller.organizationId;
      const usage = await readUsage(caller);
      if (usage.window) setRateLimitHeaders(response, caller.plan, usage.window);
      sendJson(request, response, 200, serializeUsage(caller, usage));
    } catch (error) {
      throw toUsageError(log, requestId, error);
    }
  };
}

import type { Request, Response } from "express";
import type { Log } from "../../shared/log.ts";
import { sendJson, setRateLimitHeaders } from "../http/send-json.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import type { Identify } from "../identify.ts";
import { type ReadUsage, serializeUsage, toUsageError } from "../read-usage.ts";

export interface UsageHandlerParts {
  identify: Identify;
  readUsage: ReadUsage;
  log: Log;
}

/** GET /v1/usage */
export function handleUsage({ identify, readUsage, log }: UsageHandlerParts) {
  return async (request: Request, response: Response) => {
    const { requestId, logFields } = requestScopeOf(response);
    try {
      const caller = await identify(request, response, "usage");
      const usage = await readUsage(caller);
      logFields.outcome = "answered";
      if (usage.window) setRateLimitHeaders(response, caller.plan, usage.window);
      sendJson(request, response, 200, serializeUsage(caller, usage));
    } catch (error) {
      throw toUsageError(log, requestId, error);
    }
  };
}

import type { Request, Response } from "express";
import type { ApiContext } from "../context.ts";
import { serializeUsage, toUsageError } from "../read-usage.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import { setRateLimitHeaders } from "../http/rate-limit-headers.ts";
import { sendJson } from "../http/send-json.ts";

/** GET /v1/usage: what can be spent now, and the plan. */
export function handleUsage(context: ApiContext) {
  return async (request: Request, response: Response) => {
    const { requestId, logFields: notes } = requestScopeOf(response);
    try {
      const caller = await context.authenticate(request);
      notes.organizationId = caller.organizationId;
      const usage = await context.readUsage(caller);
      if (usage.window) setRateLimitHeaders(response, caller.plan, usage.window);
      sendJson(request, response, 200, serializeUsage(caller, usage));
    } catch (error) {
      throw toUsageError(context.log, requestId, error);
    }
  };
}

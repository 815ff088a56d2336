import type { Request, Response } from "express";
import type { ApiContext } from "../context.ts";
import { readUsageOf, usageBody, usageRefusal } from "../usage.ts";
import { exchangeOf } from "./exchange.ts";
import { setRateLimit } from "./rate-limit.ts";
import { sendJson } from "./send-error.ts";

/** GET /v1/usage: what can be spent now, and the plan. */
export function answerUsage(context: ApiContext) {
  return async (request: Request, response: Response) => {
    const { requestId, notes } = exchangeOf(response);
    try {
      const caller = await context.authenticate(request);
      notes.organizationId = caller.organizationId;
      const usage = await readUsageOf(context, caller);
      if (usage.window) setRateLimit(response, caller.plan, usage.window);
      sendJson(request, response, 200, usageBody(caller, usage));
    } catch (error) {
      throw usageRefusal(context, requestId, error);
    }
  };
}

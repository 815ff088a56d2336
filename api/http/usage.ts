import type { Request, Response } from "express";
import { exchangeOf } from "./exchange.ts";
import { setRateLimit } from "./rate-limit.ts";
import { sendJson } from "./send-error.ts";
import type { ApiContext } from "../context.ts";
import { readUsageOf } from "../usage.ts";

/** GET /v1/usage: what can be spent now, and the plan. */
export function answerUsage(context: ApiContext) {
  return async (request: Request, response: Response) => {
    const caller = await context.authenticate(request);
    exchangeOf(response).notes.organizationId = caller.organizationId;
    const { creditBalanceMils, window } = await readUsageOf(context, caller);
    if (window) setRateLimit(response, caller.plan, window);
    sendJson(request, response, 200, JSON.stringify({ creditBalanceMils, plan: caller.plan.code }));
  };
}

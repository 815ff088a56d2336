import type { Request, Response } from "express";
import { CallerError } from "../../shared/errors.ts";
import type { ApiContext } from "../context.ts";
import { readUsageOf } from "../usage.ts";
import { exchangeOf } from "./exchange.ts";
import { setRateLimit } from "./rate-limit.ts";
import { sendJson } from "./send-error.ts";

const retryAfterMs = 1_000;

/** GET /v1/usage: what can be spent now, and the plan. It has three errors; a defect is told as the 503 among them. */
export function answerUsage(context: ApiContext) {
  return async (request: Request, response: Response) => {
    const { requestId, notes } = exchangeOf(response);
    try {
      const caller = await context.authenticate(request);
      notes.organizationId = caller.organizationId;
      const { creditBalanceMils, window } = await readUsageOf(context, caller);
      if (window) setRateLimit(response, caller.plan, window);
      sendJson(request, response, 200, JSON.stringify({ creditBalanceMils, plan: caller.plan.code }));
    } catch (error) {
      if (error instanceof CallerError) throw error;
      context.log.error({ err: error, requestId }, "a request failed by a defect");
      throw new CallerError("unavailable", { reason: "balance_unreadable", retryAfterMs });
    }
  };
}

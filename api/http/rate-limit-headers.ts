import type { ServerResponse } from "node:http";
import type { RateWindow } from "../../shared/credits/admit.ts";
import type { Plan } from "../../shared/credits/plans.ts";

/** Sets the RateLimit headers (draft-ietf-httpapi-ratelimit-headers: q requests in w seconds, r left, t seconds to reset). */
export function setRateLimitHeaders(response: ServerResponse, plan: Plan, window: RateWindow): void {
  const left = Math.max(0, plan.windowLimit - window.used);
  response.setHeader("RateLimit-Policy", `"default";q=${plan.windowLimit};w=${plan.windowSeconds}`);
  response.setHeader("RateLimit", `"default";r=${left};t=${Math.ceil(window.leftMs / 1_000)}`);
}

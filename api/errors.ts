import type { Plan } from "../shared/credits/plans.ts";
import type { RateWindow } from "../shared/credits/holds.ts";
import type { UnavailableReason } from "../shared/error-schemas.ts";
import { CallerError } from "../shared/errors.ts";

/** Met by Stripe and by the billing page alone, and not by callers of the API. */
type OtherReason = "payments_unavailable" | "topup_not_credited" | "too_many_downloads";

/** 503 with the time after which a retry makes sense. */
export function unavailable(reason: UnavailableReason | OtherReason, retryAfterMs = 1_000): CallerError {
  return new CallerError("unavailable", { reason, retryAfterMs });
}

const retryCrowdedMs = 1_000;

/** 429 with where the window stands, for the RateLimit headers. */
export class RateLimited extends CallerError {
  readonly plan: Plan;
  readonly window: RateWindow;

  constructor(reason: "window" | "concurrency", plan: Plan, window: RateWindow) {
    super(
      "rate_limited",
      reason === "window"
        ? { reason, retryAfterMs: window.leftMs, limit: plan.windowLimit, windowSeconds: plan.windowSeconds }
        : { reason, retryAfterMs: retryCrowdedMs, limit: plan.concurrency },
    );
    this.plan = plan;
    this.window = window;
  }
}

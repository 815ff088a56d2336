import type { Config } from "../../shared/config.ts";
import type { CallerError } from "../../shared/errors.ts";
import { retryAfterSeconds } from "../http/send-error.ts";

/** One sentence or two for a model that was refused: what to do next, and whether the same call makes sense again. */
export function errorHint({ TOPUP_URL }: Config, error: CallerError): string {
  const { code, details } = error;
  switch (code) {
    case "bad_request":
      return details.reason === "idempotency_key_reused"
        ? "This idempotency key belongs to another query: use a new one."
        : "Mend the arguments that error.details names, then call again.";
    case "query_rejected":
      return typeof details.field !== "string"
        ? "Ask something else: this query is refused every time."
        : `Leave out the field ${details.field} or give it another value, then call again.`;
    case "not_implemented":
      return "Call again with another engine: error.details.supported names them.";
    case "plan_required":
      return "Do not call again: tell the user that the organization's plan does not allow this now.";
    case "out_of_credits":
      return `Tell the user to top up at ${TOPUP_URL}. Mils that are held come back or are charged when the searches in flight end.`;
    case "rate_limited":
      return details.reason === "concurrency"
        ? `Let one of the ${String(details.limit)} searches in flight end, then call again.`
        : `Wait ${retryAfterSeconds(error)} s, then call again.`;
    case "unavailable":
      return `Nothing was charged. Wait ${retryAfterSeconds(error)} s, then call again.`;
    default:
      return "Nothing was charged. Call again; if it fails twice more, tell the user.";
  }
}

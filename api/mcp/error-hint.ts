import type { CallerError } from "../../shared/errors.ts";
import { retryAfterSeconds } from "../http/send-error.ts";

/** With these no search has run for the call. With another one it may have. */
const refusedBefore = new Set<unknown>(["no_workers", "queue_too_long", "shutting_down", "token_lookups_full"]);
const unlessKept =
  "Nothing was charged, unless the call had an idempotency key: then the retry needs the same key, under which its answer may be kept.";

/** What a model should do after an error, in one or two sentences, and whether a retry makes sense. */
export function errorHint(error: CallerError, topupUrl: string): string {
  const { code, details } = error;
  switch (code) {
    case "bad_request":
      return details.reason === "idempotency_key_reused"
        ? "This idempotency key was used for another query. Use a new key."
        : "Fix the fields listed in `error.details.issues`, then retry.";
    case "query_rejected":
      if (details.reason === "location_ambiguous")
        return "Set `location` to the intended one of `error.details.candidates`, then retry. If you cannot tell which, ask the user.";
      if (details.reason === "location_unknown")
        return "Set `location` to one of `error.details.candidates` if it is the intended place. Otherwise use the place's English name, add its region, or use its country. Then retry.";
      return typeof details.field === "string"
        ? `Omit or change the field \`${details.field}\`, then retry.`
        : "Do not retry. Providers reject this query; use a different one.";
    case "not_implemented":
      return "Retry with one of the engines listed in `error.details.supported`.";
    case "unauthenticated":
      return `Do not retry. Tell the user that this token lacks the scope \`${String(details.scope)}\`, and that the operator can issue a token that has it.`;
    case "plan_required":
      if (details.reason === "max_depth")
        return `Retry with a \`depth\` of at most ${String(details.maxDepth)}. The organization's plan does not include more.`;
      return details.reason === "suspended"
        ? "Do not retry. Tell the user that the operator has suspended the organization, and to contact the operator."
        : "Do not retry. Tell the user that the organization's plan does not include searches.";
    case "out_of_credits":
      if (details.action === "raise_limit")
        return `Do not retry before ${String(details.renewsAt)}. Tell the user that ${details.reason === "token_limit" ? "this token's" : "the organization's"} spending limit was reached, which its payer can raise.`;
      return `Tell the user to top up at ${topupUrl}. Held mils are charged or released when the searches in flight end.`;
    case "rate_limited":
      if (details.reason === "unpaid_calls")
        return `Do not retry before ${retryAfterSeconds(error)} s have passed. Tell the user that too many searches were cancelled or disconnected in the last hour.`;
      if (details.reason === "concurrency")
        return `Wait until one of the ${String(details.limit)} searches in flight ends, then retry.`;
      if (details.reason === "unread") return "Read the answers to earlier calls, then retry.";
      return `Wait ${retryAfterSeconds(error)} s, then retry.`;
    case "unavailable":
      return `${refusedBefore.has(details.reason) ? "Nothing was charged." : unlessKept} Wait ${retryAfterSeconds(error)} s, then retry.`;
    case "engine_timeout":
      return `${unlessKept} Retry at most twice; if it still fails, tell the user.`;
    case "engine_error":
      if (details.reason === "provider_refused")
        return "Nothing was charged. Do not retry. Tell the user that the search provider refuses this service, and that its operator has to act.";
      return details.reason === "unreadable_answer"
        ? "Nothing was charged. Retry once; if it fails again, change the keyword or tell the user."
        : "Nothing was charged. Wait a minute, then retry at most twice; if it still fails, tell the user.";
    case "not_found":
    case "method_not_allowed":
    case "internal_error":
      break;
  }
  return "Nothing was charged. Retry at most twice; if it still fails, tell the user.";
}

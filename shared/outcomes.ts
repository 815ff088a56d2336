/** How searches, charges and events end. The ledger and the search log store these words, and metrics have them as labels. */

/** The outcomes of admission that return only the state of the rate window. */
export const plainAdmissions = [
  "stored_answer",
  "completed",
  "waiting",
  "key_reused",
  "shed",
  "limited",
  "concurrency_limited",
] as const;

/** Why Postgres refused a charge, by the limit. */
export const limitReasons = ["daily_limit", "monthly_limit", "token_daily_limit", "token_monthly_limit"] as const;
export type LimitReason = (typeof limitReasons)[number];

/** How the last provider failed: the reasons of the error `engine_error`. */
export const engineFailures = ["provider_unavailable", "provider_refused", "unreadable_answer"] as const;

/** Why a search was not charged. `decide_searches()` sets those down to the limits; the process that settles sets the others. */
export const refundReasons = [
  "out_of_credits",
  "already_paid",
  "idempotency_key_reused",
  ...limitReasons,
  ...engineFailures,
  "engine_timeout",
  "query_rejected",
  "deadline_passed",
  "caller_disconnected",
  "not_enqueued",
  "admission_unknown",
  "worker_failed",
  "swept",
] as const;
export type RefundReason = (typeof refundReasons)[number];

/** Why a charge was reversed. For `undelivered` it is unknown whether the answer arrived. */
export const reversalReasons = ["caller_disconnected", "engine_timeout", "undelivered"] as const;
export type ReversalReason = (typeof reversalReasons)[number];

/** Where an answer came from: a provider, a concurrent identical search, the cache, or the organization's own kept answers. */
export const answerSources = ["provider", "shared", "cache", "kept"] as const;
export type AnswerSource = (typeof answerSources)[number];

/**
 * How an attempt to send an event ends. `refused`: with another status than 2xx; `unreachable`: no connection, or none that
 * answered; `address_refused`: the name leads to a private network.
 */
export const deliveryOutcomes = ["delivered", "refused", "timeout", "unreachable", "address_refused"] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

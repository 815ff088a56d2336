import type { HistoryFilter } from "../../../shared/credits/history.ts";
import type { RefundReason, ReversalReason } from "../../../shared/outcomes.ts";

/** The ledger's reasons and filters in words for the people who pay. */

export const refundLabels: Record<RefundReason, string> = {
  out_of_credits: "There was not enough credit left to charge it",
  daily_limit: "The organization's limit of the day was reached before it could be charged",
  monthly_limit: "The organization's limit of the month was reached before it could be charged",
  token_daily_limit: "The token's limit of the day was reached before it could be charged",
  token_monthly_limit: "The token's limit of the month was reached before it could be charged",
  already_paid: "A repeat whose Idempotency-Key had already paid",
  idempotency_key_reused: "Its Idempotency-Key had already paid for another query",
  engine_error: "The search provider failed",
  engine_timeout: "No answer arrived before the deadline",
  query_rejected: "The search provider rejected the query",
  deadline_passed: "The deadline passed before the search started",
  caller_gone: "The caller disconnected before the answer",
  not_enqueued: "The service could not accept the search",
  admission_unknown: "The service could not confirm that the search had started",
  worker_failed: "The service failed",
  abandoned: "The service did not finish the search in time",
};

export const reversalLabels: Record<ReversalReason, string> = {
  caller_gone: "The caller disconnected before the answer arrived",
  engine_timeout: "The answer arrived too late",
  undelivered: "Delivery of the answer was not confirmed",
};

export const filterLabels: Record<HistoryFilter, string> = {
  all: "All",
  charged: "Charged",
  refunded: "Not charged",
  reversed: "Credited back",
  grants: "Credit added",
};

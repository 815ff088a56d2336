import type { HistoryFilter } from "../../../shared/credits/history.ts";
import type { RefundReason, ReversalReason } from "../../../shared/credits/ledger.ts";

/** What the ledger's words mean to somebody who pays. */

export const refundLabels: Record<RefundReason, string> = {
  out_of_credits: "There was too little credit left when it was to be charged",
  already_paid: "A repeat under an Idempotency-Key that had paid",
  idempotency_key_reused: "Its Idempotency-Key had paid for another query",
  engine_error: "The search provider failed",
  engine_timeout: "No answer came within the deadline",
  query_rejected: "The search provider refused the query",
  deadline_passed: "The deadline passed before it was answered",
  caller_gone: "The caller hung up before the answer",
  not_enqueued: "The service could not take it on",
  admission_unknown: "The service could not tell whether it had begun",
  worker_failed: "The service failed",
  abandoned: "The service did not finish it in time",
};

export const reversalLabels: Record<ReversalReason, string> = {
  caller_gone: "The caller hung up before the answer arrived",
  engine_timeout: "The answer came too late",
  undelivered: "Nothing proves that the answer arrived",
};

export const filterLabels: Record<HistoryFilter, string> = {
  all: "All",
  charged: "Charged",
  refunded: "Not charged",
  reversed: "Given back",
  grants: "Credit added",
};

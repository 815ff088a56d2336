import { collectDefaultMetrics, Counter, type CounterConfiguration, Gauge, Histogram, Registry } from "prom-client";
import { answerSources, deliveryOutcomes, plainAdmissions, refundReasons, reversalReasons } from "./outcomes.ts";

const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

// prom-client measures the lag of the event loop with a timer of 10 ms, which causes half of the CPU of an idle process.
const unusedLagPrecisionMs = 60_000;

const otherAdmissions = ["balance_missing", "held", "insufficient_credit", "spending_limit", "unpaid_calls", "unknown"];
/** The statuses of searches that count in the objectives; over MCP those of messages that were refused before their tool. */
export const searchStatuses = [200, 500, 502, 503, 504];
/** The same over MCP. */
const toolOutcomes = ["answered", "replayed", "internal_error", "engine_error", "unavailable", "engine_timeout"];
const topupOutcomes = [
  "begun",
  "not_begun",
  "credited",
  "repeated",
  "unpaid",
  "foreign",
  "unknown_organization",
  "unusable",
  "unsigned",
  "signature_refused",
  "refunded",
  "disputed",
  "ignored",
  "card_saved",
];
const autoTopupOutcomes = ["begun", "paid", "declined", "refused", "unanswered", "cancelled", "paused"];

export type Metrics = ReturnType<typeof openMetrics>;

/** Declares every metric of a process. None has an organization, a token or a keyword as a label. */
export function openMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: unusedLagPrecisionMs });
  for (const { name } of registry.getMetricsAsArray())
    if (name.startsWith("nodejs_eventloop_lag")) registry.removeSingleMetric(name);
  const declare = declareIn(registry);
  const metrics = {
    registry,
    ...ofRequests(declare),
    ...ofMoney(declare),
    ...ofQueue(declare),
    ...ofProviders(declare),
    ...ofBillingPage(declare),
    ...ofProcess(declare),
  };
  // Counters begin at 0 for every known label, so that a rate includes the first increase.
  startAtZero(metrics.parserRefusals, "reason", ["malformed_http", "headers_too_large", "request_too_slow"]);
  // Those of periodic tasks begin with their task.
  startAtZero(metrics.backgroundErrors, "where", ["deliveries", "leases", "queue", "shares", "worker"]);
  startAtZero(metrics.admissions, "outcome", [...plainAdmissions, ...otherAdmissions]);
  startAtZero(metrics.deliveries, "outcome", ["delivered", "caller_disconnected", "too_late"]);
  startAtZero(metrics.reversals, "reason", reversalReasons);
  startAtZero(metrics.reversedMils, "reason", reversalReasons);
  startAtZero(metrics.answeredSearches, "from", answerSources);
  startAtZero(metrics.providerCostSavedMicroUsd, "from", ["shared", "cache"]);
  startAtZero(metrics.rawAnswers, "outcome", ["kept", "no_headroom", "dropped", "failed"]);
  startAtZero(metrics.searchLogRows, "outcome", ["written", "dropped"]);
  startAtZero(metrics.keptAnswers, "outcome", ["written", "dropped"]);
  startAtZero(metrics.topups, "outcome", topupOutcomes);
  startAtZero(metrics.autoTopups, "outcome", autoTopupOutcomes);
  startAtZero(metrics.webhookDeliveries, "outcome", deliveryOutcomes);
  startAtZero(metrics.balancesStored, "why", ["redis_restarted", "older", "impossible"]);
  startAtZero(metrics.traceSpans, "outcome", ["exported", "failed", "dropped"]);
  startAtZero(metrics.signIns, "outcome", ["signed_in", "refused", "limited"]);
  for (const lane of ["known", "new"]) {
    for (const outcome of ["valid", "invalid", "failed"]) metrics.tokenLookups.inc({ lane, outcome }, 0);
  }
  metrics.tokenLookups.inc({ lane: "new", outcome: "refused" }, 0);
  metrics.settlements.inc({ kind: "charge", reason: "delivered" }, 0);
  for (const reason of refundReasons) metrics.settlements.inc({ kind: "refund", reason }, 0);
  for (const status of searchStatuses)
    for (const route of ["/v1/serp/search", "/mcp"]) metrics.httpSeconds.zero({ route, status });
  for (const outcome of toolOutcomes) metrics.mcpCalls.inc({ tool: "search", outcome }, 0);
  return metrics;
}

function ofRequests({ counter, gauge, histogram }: Declare) {
  return {
    httpSeconds: histogram("http_request_duration_seconds", "From the request's headers to the end of the response.", [
      "route",
      "status",
    ]),
    parserRefusals: counter(
      "http_parser_refusals_total",
      "Requests that Node's HTTP parser refused, by reason. They have no route.",
      ["reason"],
    ),
    admissions: counter("admissions_total", "Searches that reached admission, by its outcome.", ["outcome"]),
    deliveries: counter("deliveries_total", "Answers, by whether a whole copy was handed to the caller's socket.", [
      "outcome",
    ]),
    tokenLookups: counter("token_lookups_total", "Tokens looked up in Postgres, by lane and outcome.", [
      "lane",
      "outcome",
    ]),
    unsentBytes: gauge("unsent_answer_bytes", "Bytes of answers that this API keeps until their callers take them."),
    mcpCalls: counter("mcp_calls_total", "MCP tool calls, by outcome.", ["tool", "outcome"]),
    backgroundErrors: counter("background_errors_total", "Errors outside of requests, by task.", ["where"]),
  };
}

function ofMoney({ counter, measured, histogram }: Declare) {
  return {
    settlements: counter("settlements_total", "Searches decided by this process, by kind and reason.", [
      "kind",
      "reason",
    ]),
    chargedMils: counter("charged_mils_total", "Mils that this process charged for answered searches."),
    unpaidCalls: counter(
      "unpaid_provider_calls_total",
      "Provider calls that count against the budgets of their organizations, because their callers left them unpaid.",
    ),
    settlementRetries: counter(
      "settlement_retries_total",
      "Settlement batches that failed in Postgres and were retried or split.",
    ),
    settlementBatch: histogram("settlement_batch_duration_seconds", "One batch of decisions in Postgres."),
    keyLookups: histogram(
      "key_lookup_duration_seconds",
      "One look into Postgres for a batch of Idempotency-Keys: whether they have paid (`keys`), and the answers (`answers`).",
      ["of"],
    ),
    reversals: counter(
      "reversals_total",
      "Charges reversed, by reason; for `undelivered` it is unknown whether the answer arrived.",
      ["reason"],
    ),
    reversedMils: counter("reversed_mils_total", "Mils of charges that this process reversed, by reason.", ["reason"]),
    topups: counter("topups_total", "Top-ups by outcome: payments begun, and events from Stripe.", ["outcome"]),
    autoTopups: counter("auto_topups_total", "Payments of automatic top-ups, and pauses, by outcome.", ["outcome"]),
    topupMils: counter("topup_mils_total", "Mils that were paid for and credited."),
    webhookDeliveries: counter("webhook_deliveries_total", "Attempts to send events, by outcome.", ["outcome"]),
    webhookEventsGivenUp: counter("webhook_events_given_up_total", "Events that no attempt delivered."),
    holdsOpen: measured("holds_open", "Open holds. Only the leading worker exports it."),
    heldMils: measured("holds_held_mils", "Mils held by open holds. Only the leading worker exports it."),
    holdsSwept: counter(
      "holds_swept_total",
      "Holds that were still open 2 s after their deadline and were ended by the sweeper.",
    ),
    maintenanceFailures: counter("maintenance_failures_total", "Steps of maintenance that failed, by step.", ["step"]),
    ledgerDriftMils: measured(
      "ledger_drift_mils",
      "Mils by which ledger, balances and Redis differ; above 0 only by a bug.",
    ),
    ledgerGapsOpen: measured(
      "ledger_gaps_open",
      "Gaps in the ledger that no operator has closed. Only the leading worker exports it.",
    ),
    oldestSnapshotAge: measured(
      "oldest_snapshot_age_transactions",
      "Transactions since the oldest one whose dead rows Postgres must keep. Only the leading worker exports it.",
    ),
    balancesStored: counter(
      "balances_stored_total",
      "Copies of balances in Redis that the reconciler stored or deleted, by why.",
      ["why"],
    ),
  };
}

function ofQueue({ measured, histogram }: Declare) {
  return {
    queueDepth: measured("queue_depth", "Searches that wait for a worker."),
    queueOldestSeconds: measured("queue_oldest_age_seconds", "Age of the oldest search that waits in the queue."),
    workerSlots: measured("worker_slots", "Searches that this worker may run at once, as its load allows."),
    workerSlotsTaken: measured("worker_slots_taken", "Searches that this worker runs."),
    workersReporting: measured("workers_reporting", "Workers with a recent heartbeat, as the API sees them."),
    queueWaitSeconds: histogram(
      "queue_wait_duration_seconds",
      "From the enqueueing of a search to its start in a worker.",
    ),
    searchSeconds: histogram(
      "search_run_duration_seconds",
      "From the start of a search in the worker to the answer or error of the engine.",
    ),
  };
}

function ofProviders({ counter, gauge, histogram }: Declare) {
  return {
    providerConfigured: gauge("provider_configured", "1 for each provider that this worker asks.", ["provider"]),
    providerCalls: counter("provider_calls_total", "Requests to providers, by outcome.", ["provider", "outcome"]),
    providerSeconds: histogram("provider_call_duration_seconds", "One request to a provider.", ["provider"]),
    providerCostMicroUsd: counter("provider_cost_micro_usd_total", "Cost of provider calls, in millionths of a USD.", [
      "provider",
    ]),
    providerUnreadableRows: counter(
      "provider_unreadable_rows_total",
      "Rows of providers' answers that could not be read and were left out.",
      ["provider"],
    ),
    truncatedAnswers: counter(
      "provider_truncated_answers_total",
      "Answers from which results were left out, because they would have been larger than 2 MiB.",
      ["provider"],
    ),
    providerBreakerOpen: gauge("provider_breaker_open", "1 while the provider's circuit breaker is open.", [
      "provider",
    ]),
    providerSlotWaitSeconds: histogram(
      "provider_slot_wait_duration_seconds",
      "From the wish to call a provider to the start of the call, or to giving up: the wait for a slot.",
      ["provider"],
    ),
    providerCallsLimit: gauge("provider_calls_limit", "Calls to a provider that this worker may run at once.", [
      "provider",
    ]),
    providerCallsRunning: gauge("provider_calls_running", "Calls to a provider that are running.", ["provider"]),
    locationListRefreshed: gauge(
      "location_list_refreshed_timestamp_seconds",
      "When the stored list of a provider's locations was fetched, in seconds since 1970.",
      ["provider"],
    ),
    answeredSearches: counter(
      "answered_searches_total",
      "Answered searches, by the source of the answer: a provider, a concurrent identical search, the cache, or kept answers.",
      ["from"],
    ),
    providerCostSavedMicroUsd: counter(
      "provider_cost_saved_micro_usd_total",
      "Cost avoided by searches that shared another search's answer, in millionths of a USD.",
      ["from"],
    ),
    rawAnswers: counter("raw_answers_total", "Entries for RAW_ANSWER_MINUTES, by whether they were kept.", ["outcome"]),
  };
}

function ofBillingPage({ counter, measured }: Declare) {
  return {
    signIns: counter("sign_ins_total", "Attempts to sign in to the account pages, by outcome.", ["outcome"]),
    searchLogRows: counter("search_log_rows_total", "Rows of the search log, by whether Postgres has them.", [
      "outcome",
    ]),
    keptAnswers: counter(
      "kept_answers_total",
      "Answers of organizations that keep theirs, by whether Postgres has them.",
      ["outcome"],
    ),
    liveStreams: measured("live_streams_open", "Open connections for live updates of the account pages."),
  };
}

function ofProcess({ counter, gauge, measured }: Declare) {
  return {
    eventLoopActive: counter("event_loop_active_seconds_total", "Seconds in which the event loop did not wait.", [], {
      collect() {
        this.reset();
        this.inc(performance.eventLoopUtilization().active / 1_000);
      },
    }),
    traceSpans: counter(
      "trace_spans_total",
      "Spans of traced searches, by whether the collector has them. `dropped` ones found too many waiting.",
      ["outcome"],
    ),
    readinessChecks: gauge("readiness_check_passed", "1 if this process passes a check of /readyz, 0 if not.", [
      "check",
    ]),
    redisMemoryUsed: measured("redis_memory_used_bytes", "Memory that Redis uses, as this API sees it."),
    redisMemoryLimit: measured("redis_memory_limit_bytes", "maxmemory of Redis, as this API sees it."),
  };
}

type Declare = ReturnType<typeof declareIn>;

function declareIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string>(
      name: string,
      help: string,
      labelNames: readonly Label[] = [],
      more: Pick<CounterConfiguration<Label>, "collect"> = {},
    ) => new Counter({ name, help, labelNames: [...labelNames], registers, ...more }),
    gauge: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Gauge({ name, help, labelNames: [...labelNames], registers }),
    /** A gauge that is absent until it is measured, not 0, so that an alert can tell "fine" from "not measured". */
    measured: (name: string, help: string) => {
      const gauge = new Gauge({ name, help, registers });
      gauge.remove();
      return gauge;
    },
    histogram: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Histogram({ name, help, labelNames: [...labelNames], buckets: secondsBuckets, registers }),
  };
}

/** Lets a counter begin at 0 for each of these values of its label, so that a rate includes the first increase. */
function startAtZero<Label extends string>(counter: Counter<Label>, label: Label, values: readonly string[]): void {
  // The computed key is the counter's own label, which TypeScript widens to string.
  for (const value of values) counter.inc({ [label]: value } as Record<Label, string>, 0);
}

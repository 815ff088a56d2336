import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { answerSources } from "./queue/replies.ts";
import { refundReasons } from "./credits/ledger.ts";
import { reversalReasons } from "./credits/deliveries.ts";

const admissionOutcomes = [
  "held",
  "replayed",
  "waiting",
  "short",
  "key_reused",
  "cold",
  "closed",
  "limited",
  "crowded",
  "unknown",
];
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
  "refunded",
  "disputed",
  "ignored",
];
const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Metrics = ReturnType<typeof openMetrics>;

/** Every metric that a process tells, declared once. None has an organization, a token or a keyword as a label. */
export function openMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const declare = declareIn(registry);
  const metrics = {
    registry,
    ...ofRequests(declare),
    ...ofMoney(declare),
    ...ofQueue(declare),
    ...ofProviders(declare),
    ...ofBillingPage(declare),
  };
  // A figure that nobody has measured is absent, not 0: an alert can tell "fine" from "not looked".
  const { holdsOpen, heldMils, ledgerDriftMils, queueDepth, queueOldestSeconds, workersReporting } = metrics;
  const measuredLater = [
    holdsOpen,
    heldMils,
    ledgerDriftMils,
    queueDepth,
    queueOldestSeconds,
    workersReporting,
    metrics.liveStreams,
  ];
  for (const measured of measuredLater) measured.remove();
  // Counters begin at 0 for every label that is known, so that a first increase is seen as one.
  startAtZero(metrics.admissions, "outcome", admissionOutcomes);
  startAtZero(metrics.deliveries, "outcome", ["delivered", "caller_gone", "too_late"]);
  startAtZero(metrics.reversals, "reason", reversalReasons);
  startAtZero(metrics.reversedMils, "reason", reversalReasons);
  startAtZero(metrics.searchesAsked, "from", answerSources);
  startAtZero(metrics.topups, "outcome", topupOutcomes);
  startAtZero(metrics.balancesStored, "why", ["redis_restarted", "older", "impossible"]);
  startAtZero(metrics.signIns, "outcome", ["signed_in", "refused", "limited"]);
  metrics.settlements.inc({ kind: "charge", reason: "delivered" }, 0);
  for (const reason of refundReasons) metrics.settlements.inc({ kind: "refund", reason }, 0);
  return metrics;
}

function ofRequests({ counter, histogram }: Declare) {
  return {
    httpSeconds: histogram("http_request_duration_seconds", "From the request's head to the end of its answer.", [
      "route",
      "status",
    ]),
    admissions: counter("admissions_total", "Searches that reached the gate, by what it said.", ["outcome"]),
    deliveries: counter("deliveries_total", "Answers, by whether all their bytes reached the caller's socket.", [
      "outcome",
    ]),
    mcpCalls: counter("mcp_calls_total", "Calls of tools over MCP, by what they were answered with.", [
      "tool",
      "outcome",
    ]),
    backgroundErrors: counter("background_errors_total", "Errors off the path of a request, by where they rose.", [
      "where",
    ]),
  };
}

function ofMoney({ counter, gauge, histogram }: Declare) {
  return {
    settlements: counter("settlements_total", "Searches decided by this process, by kind and reason.", [
      "kind",
      "reason",
    ]),
    chargedMils: counter("charged_mils_total", "Mils that this process took for answered searches."),
    settlementRetries: counter("settlement_retries_total", "Settlement batches that Postgres did not take at once."),
    settlementBatch: histogram("settlement_batch_duration_seconds", "One round trip of the settle function."),
    reversals: counter("reversals_total", "Charges given back, by reason; `undelivered` ones are in doubt.", [
      "reason",
    ]),
    reversedMils: counter("reversed_mils_total", "Mils of charges that this process gave back, by reason.", ["reason"]),
    topups: counter("topups_total", "What came of top-ups: payments begun, and events of Stripe.", ["outcome"]),
    topupMils: counter("topup_mils_total", "Mils that were paid for and credited."),
    holdsOpen: gauge("holds_open", "Holds placed and not yet ended. Told by the worker that sweeps."),
    heldMils: gauge("holds_held_mils", "Mils held by open holds. Told by the worker that sweeps."),
    holdsSwept: counter("holds_swept_total", "Holds that nobody had ended by their deadline and its grace."),
    ledgerDriftMils: gauge(
      "ledger_drift_mils",
      "Mils by which ledger, balances and Redis differ; 0 unless money is wrong.",
    ),
    balancesStored: counter("pairs_stored_total", "Balance copies in Redis that the reconciler made anew.", ["why"]),
  };
}

function ofQueue({ gauge, histogram }: Declare) {
  return {
    queueDepth: gauge("queue_depth", "Searches that wait for a worker."),
    queueOldestSeconds: gauge("queue_oldest_age_seconds", "How long the oldest waiting search has been in the queue."),
    workersReporting: gauge("workers_reporting", "Workers whose heartbeat the API sees."),
    queueWaitSeconds: histogram("queue_wait_duration_seconds", "From the enqueueing of a search to its start."),
    searchSeconds: histogram("search_run_duration_seconds", "From the start of a search in the worker to its end."),
  };
}

function ofProviders({ counter, gauge, histogram }: Declare) {
  return {
    providerCalls: counter("provider_calls_total", "Requests to providers, by how they ended.", [
      "provider",
      "outcome",
    ]),
    providerSeconds: histogram("provider_call_duration_seconds", "One request to a provider.", ["provider"]),
    providerCostMicroUsd: counter(
      "provider_cost_micro_usd_total",
      "What providers charged us, in millionths of a USD.",
      ["provider"],
    ),
    providerBreakerOpen: gauge("provider_breaker_open", "1 while a provider is passed over because it fails.", [
      "provider",
    ]),
    providerCallsRunning: gauge("provider_calls_running", "Calls to a provider that are under way.", ["provider"]),
    searchesAsked: counter(
      "searches_asked_total",
      "Answered searches, by where the answer came from: a provider, an equal search of the same moment, or the cache.",
      ["from"],
    ),
    providerCostSavedMicroUsd: counter(
      "provider_cost_saved_micro_usd_total",
      "What searches would have cost that were answered with another search's answer.",
      ["from"],
    ),
  };
}

function ofBillingPage({ counter, gauge }: Declare) {
  return {
    signIns: counter("sign_ins_total", "Attempts to sign in to the billing page, by how they ended.", ["outcome"]),
    liveStreams: gauge("live_streams_open", "Billing pages that are open and follow their account."),
  };
}

type Declare = ReturnType<typeof declareIn>;

function declareIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter({ name, help, labelNames: [...labelNames], registers }),
    gauge: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Gauge({ name, help, labelNames: [...labelNames], registers }),
    histogram: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Histogram({ name, help, labelNames: [...labelNames], buckets: secondsBuckets, registers }),
  };
}

function startAtZero<Label extends string>(counter: Counter<Label>, label: Label, values: readonly string[]): void {
  // The computed key is the counter's own label, which TypeScript widens to string.
  for (const value of values) counter.inc({ [label]: value } as Record<Label, string>, 0);
}

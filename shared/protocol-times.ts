/**
 * The times that API, worker, sweeper and reconciler must agree on. Money stays correct only while the relations below
 * hold, so they are checked when this file is loaded: a process with a broken table does not start.
 */
export const protocolTimes = {
  /** Bounds and default of SEARCH_DEADLINE_MS: from the arrival of the whole request to its last possible answer. */
  searchDeadlineMinMs: 500,
  searchDeadlineDefaultMs: 30_000,
  searchDeadlineMaxMs: 120_000,

  /** The worker stops asking providers this long before the deadline: settling and the reply need the rest. */
  settleMarginMs: 300,
  /** A step of a search that meets its deadline in Redis or Postgres times out this long after it. */
  lateStepMs: 600,
  /** At the deadline the API asks Postgres for a refund and waits this long for the decision. */
  undoTimeoutMs: 800,
  /** If the search was charged by then, the API waits this long for the answer before it reverses the charge. */
  lateAnswerMs: 500,
  /** An inbox that gets no reply for this long expires: its API has died, or waits for none. */
  replyInboxMs: 180_000,
  /** The API begins no 200 later than this after the deadline; it reverses the charge instead. */
  deliveryFenceMs: 2_000,
  /** A caller that has not taken the whole answer in this time is disconnected, and the charge is reversed. */
  deliveryTimeoutMs: 10_000,
  /** How long the API retries to record a delivery. The reconciler reverses the charge if it never succeeds. */
  confirmationRetryMs: 240_000,
  /** How long the API retries a reversal. The reconciler makes it later if it never succeeds. */
  reversalRetryMs: 20_000,
  /** How long the API retries a refund that no caller waits for. The sweeper makes it later if it never succeeds. */
  undoRetryMs: 5_000,

  /** The sweeper ends holds this long after their deadline; until then they belong to the API and the worker. */
  sweepGraceMs: 2_000,
  /** The reconciler reverses charges that are older than this and not confirmed as delivered. */
  undeliveredReversalAfterMs: 300_000,
  /** `ledger verify` reports a hold that is open this long after its deadline. */
  overdueViolationAfterMs: 60_000,
  /** `ledger verify` reports a charge that is neither confirmed nor reversed at this age. */
  undeliveredViolationAfterMs: 600_000,

  /** How long Redis keeps the record of a key whose first request runs, if nothing ends it. */
  idempotencyRecordMs: 600_000,
  /** How long Redis keeps the end of the first request, for the repeats that wait. Answers are in Postgres. */
  idempotencyEndMs: 5_000,
  /** The longest pause between two polls of a repeat that waits for the first request. */
  idempotencyPollMaxMs: 100,

  /** A worker holds the lock on a job this long and renews it at half of that. After that the job has stalled. */
  jobLockMs: 4_000,
  /** How often workers look for stalled jobs to take them over. */
  stallCheckIntervalMs: 1_500,
  /** A stopping worker finishes its searches for this long and hands the rest back to the queue. */
  jobDrainMs: 10_000,
  /** How long a process waits for each resource to close when it stops, with the default deadline: {@link shutdownStepMsWith}. */
  shutdownStepMs: 45_000,

  /** How long a process waits for Redis' answer to a command. */
  redisCommandMs: 2_000,
  /** How often a process pings Redis on each of its connections. */
  redisPingMs: 1_000,
  /** How long one blocking read of Redis may take. */
  redisBlockMs: 1_000,
  /** A connection to Redis that gets no answer for this long is closed and opened anew. */
  redisSilenceMs: 2_500,

  /** How often a worker writes its heartbeat, and how often the API reads them. */
  heartbeatIntervalMs: 1_000,
  /** A worker without a heartbeat for this long is not counted as capacity. */
  heartbeatTimeoutMs: 5_000,
  /** How often an API that stops reads the heartbeats, and any API while searches arrive. */
  heartbeatReadingMs: 50,
  /** A stopping worker takes searches for this long after it has removed its heartbeat. */
  heartbeatLeadMs: 250,
  /** How often a worker decides about its slots, which it doubles at most. */
  slotDoublingMs: 250,
  /** Heartbeats older than this are deleted. */
  heartbeatRecordMs: 60_000,

  /** How often a worker runs maintenance: it renews or tries to take the leader's lease, then sweeps. */
  maintenanceIntervalMs: 1_000,
  /** Without renewal the leader's lease expires after this, and another worker takes over. */
  leaderLeaseMs: 3_000,
};

export type ProtocolTimes = Readonly<Record<keyof typeof protocolTimes, number>>;

/** What must hold between the times, by the sentence that says why. */
export const protocolRelations: Readonly<Record<string, (times: ProtocolTimes) => boolean>> = {
  "the default deadline lies within its bounds": (t) =>
    t.searchDeadlineMinMs <= t.searchDeadlineDefaultMs && t.searchDeadlineDefaultMs <= t.searchDeadlineMaxMs,
  "the shortest deadline leaves time to ask a provider": (t) => t.settleMarginMs < t.searchDeadlineMinMs,
  "a late step, the undo and a late answer end before the fence": (t) =>
    t.lateStepMs + t.undoTimeoutMs + t.lateAnswerMs < t.deliveryFenceMs,
  "the API decides before the sweeper": (t) => t.lateStepMs + t.undoTimeoutMs + t.lateAnswerMs < t.sweepGraceMs,
  "an answer is written before the reconciler may reverse its charge": (t) =>
    t.searchDeadlineMaxMs + t.deliveryFenceMs + t.deliveryTimeoutMs < t.undeliveredReversalAfterMs,
  "a confirmation is retried only while it can still prevent a reversal": (t) =>
    t.confirmationRetryMs < t.undeliveredReversalAfterMs,
  "the API retries a reversal before the reconciler makes it": (t) => t.reversalRetryMs < t.undeliveredReversalAfterMs,
  "verify reports a charge only after the reconciler had time to reverse it": (t) =>
    t.undeliveredReversalAfterMs + t.overdueViolationAfterMs < t.undeliveredViolationAfterMs,
  "verify reports a hold only after another leader had time to sweep it": (t) =>
    t.sweepGraceMs + t.undoRetryMs + t.leaderLeaseMs + t.jobLockMs < t.overdueViolationAfterMs,
  "an inbox outlives the searches that wait for it": (t) => t.searchDeadlineMaxMs + t.deliveryFenceMs < t.replyInboxMs,
  "the record of a key outlives its search and the sweep of its hold": (t) =>
    t.searchDeadlineMaxMs + t.overdueViolationAfterMs < t.idempotencyRecordMs,
  "every waiting repeat polls an end several times before it expires": (t) =>
    10 * t.idempotencyPollMaxMs <= t.idempotencyEndMs,
  "a stalled job is found while its lock could still be renewed": (t) => t.stallCheckIntervalMs < t.jobLockMs,
  "a killed worker's search has most of its time left when it is taken over": (t) =>
    2 * (t.jobLockMs + t.stallCheckIntervalMs) < t.searchDeadlineDefaultMs,
  "a stopping worker hands jobs back before its shutdown step ends": (t) => t.jobDrainMs < t.shutdownStepMs,
  "a stopping API answers the searches that it has": (t) =>
    t.searchDeadlineDefaultMs + t.deliveryFenceMs + t.deliveryTimeoutMs < t.shutdownStepMs,
  "a stopping API finishes the reversals and refunds that it began": (t) =>
    t.reversalRetryMs + t.undoRetryMs < t.shutdownStepMs,
  "Redis may take as long for a command as the connection waits": (t) => t.redisCommandMs < t.redisSilenceMs,
  "a ping behind a blocking read is answered in time": (t) => 2 * t.redisBlockMs < t.redisSilenceMs,
  "a silent Redis is noticed before its workers' searches are late": (t) =>
    t.redisPingMs + t.redisSilenceMs < t.jobLockMs,
  "a worker may miss three heartbeats": (t) => 4 * t.heartbeatIntervalMs <= t.heartbeatTimeoutMs,
  "an API that stops knows that a worker stops while that still takes searches": (t) =>
    4 * t.heartbeatReadingMs < t.heartbeatLeadMs,
  "an API knows of raised slots before they are raised again": (t) => 2 * t.heartbeatReadingMs < t.slotDoublingMs,
  "a heartbeat is kept while it counts": (t) => t.heartbeatTimeoutMs < t.heartbeatRecordMs,
  "the leader may miss one renewal": (t) => 2 * t.maintenanceIntervalMs < t.leaderLeaseMs,
};

/** How long a stopping process with this SEARCH_DEADLINE_MS waits for each resource to close: a raised deadline adds to it. */
export function shutdownStepMsWith(searchDeadlineMs: number): number {
  return protocolTimes.shutdownStepMs + Math.max(0, searchDeadlineMs - protocolTimes.searchDeadlineDefaultMs);
}

/** @throws {Error} that names every relation that does not hold. */
export function checkProtocolTimes(times: ProtocolTimes): void {
  const broken = Object.entries(protocolRelations).filter(([, holds]) => !holds(times));
  if (broken.length > 0) throw new Error(`protocol times contradict: ${broken.map(([name]) => name).join("; ")}`);
}

checkProtocolTimes(protocolTimes);

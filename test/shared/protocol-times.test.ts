import { expect, test } from "vitest";
import {
  checkProtocolTimes,
  protocolRelations,
  protocolTimes,
  type ProtocolTimes,
  shutdownStepMsWith,
} from "../../shared/protocol-times.ts";

const violations: Record<string, Partial<ProtocolTimes>> = {
  "the default deadline lies within its bounds": { searchDeadlineMinMs: 30_001 },
  "the shortest deadline leaves time to ask a provider": { settleMarginMs: 500 },
  "a late step, the undo and a late answer end before the fence": { deliveryFenceMs: 1_900 },
  "the API decides before the sweeper": { sweepGraceMs: 1_900 },
  "an answer is written before the reconciler may reverse its charge": { deliveryTimeoutMs: 178_000 },
  "a confirmation is retried only while it can still prevent a reversal": { confirmationRetryMs: 300_000 },
  "the API retries a reversal before the reconciler makes it": { reversalRetryMs: 300_000 },
  "verify reports a charge only after the reconciler had time to reverse it": { undeliveredViolationAfterMs: 360_000 },
  "verify reports a hold only after another leader had time to sweep it": { overdueViolationAfterMs: 14_000 },
  "an inbox outlives the searches that wait for it": { replyInboxMs: 122_000 },
  "the record of a key outlives its search and the sweep of its hold": { idempotencyRecordMs: 180_000 },
  "every waiting repeat polls an end several times before it expires": { idempotencyEndMs: 999 },
  "a stalled job is found while its lock could still be renewed": { stallCheckIntervalMs: 4_000 },
  "a killed worker's search has most of its time left when it is taken over": { jobLockMs: 13_500 },
  "a stopping worker hands jobs back before its shutdown step ends": { jobDrainMs: 45_000 },
  "a stopping API answers the searches that it has": { searchDeadlineDefaultMs: 33_000 },
  "a stopping API finishes the reversals and refunds that it began": { undoRetryMs: 25_000 },
  "Redis may take as long for a command as the connection waits": { redisCommandMs: 2_500 },
  "a ping behind a blocking read is answered in time": { redisBlockMs: 1_250 },
  "a silent Redis is noticed before its workers' searches are late": { redisPingMs: 1_500 },
  "a worker may miss three heartbeats": { heartbeatIntervalMs: 1_251 },
  "an API that stops knows that a worker stops while that still takes searches": { heartbeatLeadMs: 200 },
  "an API knows of raised slots before they are raised again": { slotDoublingMs: 100 },
  "a heartbeat is kept while it counts": { heartbeatRecordMs: 5_000 },
  "the leader may miss one renewal": { leaderLeaseMs: 2_000 },
};

test("the protocol's times agree with each other", () => {
  expect(() => checkProtocolTimes(protocolTimes)).not.toThrow();
});

test.each(Object.entries(violations))("a process refuses to start unless %s", (relation, change) => {
  expect(() => checkProtocolTimes({ ...protocolTimes, ...change })).toThrow(relation);
});

test.each([500, 30_000, 120_000])(
  "an API with a deadline of %d ms that stops has the time to answer every search that it has",
  (deadlineMs) => {
    const { deliveryFenceMs, deliveryTimeoutMs, reversalRetryMs, undoRetryMs } = protocolTimes;
    const stepMs = shutdownStepMsWith(deadlineMs);
    expect(stepMs).toBeGreaterThan(deadlineMs + deliveryFenceMs + deliveryTimeoutMs);
    expect(stepMs).toBeGreaterThan(reversalRetryMs + undoRetryMs);
  },
);

test("every relation between the times is tried with a value that breaks it", () => {
  expect(Object.keys(violations)).toEqual(Object.keys(protocolRelations));
});

test("every time is bound by a relation", () => {
  const unbound = Object.entries(protocolTimes).filter(([name, value]) =>
    [0, -value, value * 1e6].every((other) => {
      try {
        checkProtocolTimes({ ...protocolTimes, [name]: other });
        return true;
      } catch {
        return false;
      }
    }),
  );
  expect(unbound).toEqual([]);
});

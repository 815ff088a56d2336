import { findOverdueHolds, type OverdueHold, readOverdueHolds } from "../shared/credits/holds.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import type { WorkerContext } from "./context.ts";

const organizationsPerPipeline = 500;
const endPatienceMs = 2_000;

/**
 * Ends the holds of organizations that nobody ended in time: a process died, or its message was lost. Safe in several
 * workers at once and at any time, since Postgres decides each search once.
 * @returns the open holds that were seen, and the mils they hold.
 */
export async function sweepHolds(context: WorkerContext, organizationIds: readonly string[]) {
  const seen = { open: 0, heldMils: 0 };
  for (let at = 0; at < organizationIds.length; at += organizationsPerPipeline) {
    const chunk = organizationIds.slice(at, at + organizationsPerPipeline);
    const pipeline = context.redis.pipeline();
    for (const organizationId of chunk) findOverdueHolds(pipeline, organizationId, protocolTimes.sweepGraceMs);
    const replies = (await pipeline.exec()) ?? [];
    for (const [place, [error, reply]] of replies.entries()) {
      if (error) throw error;
      const { open, heldMils, overdue } = readOverdueHolds(reply);
      seen.open += open;
      seen.heldMils += heldMils;
      await Promise.all(overdue.map((hold) => end(context, chunk[place] ?? "", hold)));
    }
  }
  return seen;
}

async function end(context: WorkerContext, organizationId: string, { requestId, keyHash }: OverdueHold): Promise<void> {
  // Its record is only freed here, never filled, so the query's fingerprint is not needed.
  const key = keyHash ? { hash: keyHash, fingerprint: "" } : undefined;
  const timeoutMs = context.config.SEARCH_DEADLINE_MS;
  await context.settlement.settle({
    request: { organizationId, requestId, key, wanted: "refund", reason: "abandoned" },
    retryForMs: endPatienceMs,
    toOutcome: () => ({ kind: "failure", code: "engine_timeout", details: { timeoutMs } }),
    ifCharged: "end",
  });
  context.metrics.holdsSwept.inc();
  context.log.warn({ requestId, organizationId }, "swept a hold that nobody had ended");
}

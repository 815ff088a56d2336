import type { Context } from "../shared/context.ts";
import { findOverdueHolds, type OverdueHold, readOverdueHolds } from "../shared/credits/holds.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { execPipeline } from "../shared/redis/pipeline.ts";

const organizationsPerPipeline = 500;
const refundRetryMs = 2_000;

type Sweeping = Pick<Context, "config" | "redis" | "metrics" | "log"> & { settlement: Settlement };

/**
 * Ends the holds that are open 2 s after their deadline, because a process died or a message was lost. Several workers
 * may sweep at once, since Postgres decides each search once.
 * @returns the open holds that it saw, and the mils they hold.
 */
export async function sweepHolds(context: Sweeping, organizationIds: readonly string[]) {
  const seen = { open: 0, heldMils: 0 };
  for (let at = 0; at < organizationIds.length; at += organizationsPerPipeline) {
    const page = organizationIds.slice(at, at + organizationsPerPipeline);
    const pipeline = context.redis.pipeline();
    for (const organizationId of page) findOverdueHolds(pipeline, organizationId, protocolTimes.sweepGraceMs);
    const replies = await execPipeline(pipeline);
    for (const [place, reply] of replies.entries()) {
      const { open, heldMils, overdue } = readOverdueHolds(reply);
      seen.open += open;
      seen.heldMils += heldMils;
      await Promise.all(overdue.map((hold) => refund(context, page[place] ?? "", hold)));
    }
  }
  return seen;
}

/** Refunds the search of a hold. If it was charged after all, the charge stays and only the hold ends. */
async function refund(context: Sweeping, organizationId: string, { requestId, keyHash }: OverdueHold): Promise<void> {
  const { config, settlement, metrics, log } = context;
  // The key's record is only freed here, never filled, so the fingerprint of its query is not needed.
  const key = keyHash ? { hash: keyHash, fingerprint: "" } : undefined;
  const timeoutMs = config.SEARCH_DEADLINE_MS;
  await settlement.settle({
    request: { organizationId, requestId, key, wanted: "refund", reason: "abandoned" },
    retryForMs: refundRetryMs,
    toOutcome: () => ({ kind: "failure", code: "engine_timeout", details: { timeoutMs } }),
    ifCharged: "end_hold",
  });
  metrics.holdsSwept.inc();
  log.warn({ requestId, organizationId }, "swept an overdue hold");
}

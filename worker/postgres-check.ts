import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import { withTimeout } from "../shared/concurrency/wait-for.ts";
import { isTransient } from "../shared/database/transient-errors.ts";
import { requireSchema } from "../shared/database/require-schema.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { throttledWarning } from "../shared/log.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { anotherReachesPostgres } from "../shared/queue/worker-heartbeats.ts";

const checkTimeoutMs = 2_000;
// By then the heartbeats of the other workers show an outage that they have too.
const failedChecksMin = 3;
const failingMsMax = failedChecksMin * protocolTimes.heartbeatIntervalMs;

export interface PostgresCheck {
  /** Whether Postgres answered the last check. */
  reachesPostgres: () => boolean;
  /** Whether Postgres has left several checks unanswered: a search that is taken now could perhaps not be settled. */
  isAway: () => boolean;
  /** Has this called as soon as Postgres is not away any more. */
  whenBack: (act: () => void) => void;
  /** Whether this worker does not reach Postgres although another one does. @throws if Redis does not answer. */
  isCutOff: () => Promise<boolean>;
}

/**
 * Asks Postgres once a second whether this worker reaches it, and finds its schema there. Postgres may answer that and decide no
 * search, as with a full disk.
 */
export function startPostgresCheck(
  context: Context,
  workerId: string,
  settlement: Pick<Settlement, "failingForMs">,
): PostgresCheck {
  const { clock, database, redis, metrics, log, shutdown } = context;
  const warn = throttledWarning(log, "this worker cannot use Postgres");
  let failedChecks = 0;
  let back = () => {};
  const isAway = () => failedChecks >= failedChecksMin;
  const check = async () => {
    try {
      await withTimeout(checkTimeoutMs, requireSchema(database));
      if (settlement.failingForMs > failingMsMax) throw new Error("no search was decided for some seconds");
      const wasAway = isAway();
      failedChecks = 0;
      if (wasAway) back();
    } catch (error) {
      // A database without the schema does not get one by itself. In both cases this worker could charge nothing.
      failedChecks = isTransient(error) ? failedChecks + 1 : failedChecksMin;
      warn(error);
    }
  };
  const pauseMs = protocolTimes.heartbeatIntervalMs;
  runPeriodically({ name: "postgres_check", pauseMs, run: check, log, metrics, shutdown });
  return {
    reachesPostgres: () => failedChecks === 0,
    isAway,
    whenBack: (act) => {
      back = act;
    },
    isCutOff: async () => isAway() && (await anotherReachesPostgres(redis, workerId, clock.nowMs())),
  };
}

import { runPeriodically } from "../concurrency/run-periodically.ts";
import { waitFor } from "../concurrency/wait-for.ts";
import { protocolTimes } from "../protocol-times.ts";
import type { Context } from "./context.ts";

const lookEveryMs = 1_000;
const stuckLooksMax = 10;

/**
 * Ends a process that is stuck, with exit code 1, so that its supervisor starts it anew. It is stuck if it was so each second
 * for ten seconds. A look that rejects, as while Redis does not answer, begins the count anew.
 * @param options.isStuck whether work waits for this process, and it has done none since the last call.
 * @param options.problem what the log then says.
 */
export function startWatchdog(
  { log, metrics, shutdown }: Pick<Context, "log" | "metrics" | "shutdown">,
  { isStuck, problem }: { isStuck: () => Promise<boolean>; problem: string },
): void {
  let stuckLooks = 0;
  const run = async () => {
    const before = stuckLooks;
    stuckLooks = 0;
    if (!(await isStuck())) return;
    stuckLooks = before + 1;
    if (stuckLooks === stuckLooksMax) void end();
  };
  const end = async () => {
    log.fatal(`${problem}: this process ends, so that its supervisor starts it anew`);
    // What is stuck may not close. Another process takes over what is left of the searches.
    await waitFor(shutdown.run(log), { timeoutMs: protocolTimes.jobDrainMs });
    process.exit(1);
  };
  runPeriodically({ name: "watchdog", pauseMs: lookEveryMs, pausesFirst: true, run, log, metrics, shutdown });
}

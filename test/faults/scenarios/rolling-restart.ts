import { auditCharges } from "../audit/audit.ts";
import type { Row } from "../report.ts";
import { type CallerAnswer, keepInFlight } from "./callers.ts";
import { LoadBalancer } from "./load-balancer.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { quantile, tally } from "./statistics.ts";

/**
 * Every process is replaced while searches run, one API and one worker at a time. The new one starts before the old one stops.
 */

export interface RollingRestartSize {
  /** The minimum; searches continue until the last process is replaced. */
  searches: number;
  inFlight: number;
  /** How long the provider takes. */
  providerMs: number;
  /** How many times each process is replaced. */
  rounds: number;
  /**
   * What keeps callers away from a stopping API. `probes`: its readiness probes fail while it still answers for some seconds.
   * `removal`: the load balancer removes it first, which depends on no clock.
   */
  drainedBy: "probes" | "removal";
}

export const rollingRestart: Scenario = {
  name: "rolling-restart",
  run: (servers) =>
    withStack(servers, { apis: 2, workers: 2 }, (stack) =>
      measureRollingRestart(stack, { searches: 20_000, inFlight: 32, providerMs: 30, rounds: 6, drainedBy: "probes" }),
    ),
};

export async function measureRollingRestart(stack: ScenarioStack, size: RollingRestartSize): Promise<Row[]> {
  const { service, callers, say } = stack;
  stack.answerAfter(size.providerMs);
  const terms = { windowLimit: 10_000_000, concurrency: 1_000 };
  const { organizationId, token } = await service.organization({ creditMils: 100_000_000, terms });
  const balancer = await LoadBalancer.before(stack.apis);
  const answers: CallerAnswer[] = [];
  let sent = 0;
  let isEnough = false;
  const load = keepInFlight(size.inFlight, async () => {
    sent += 1;
    answers.push(await callers.search(balancer.next(), token, `rolling ${sent}`));
    return !(isEnough && answers.length >= size.searches);
  });
  try {
    const exitCodes: (number | null)[] = [];
    for (let round = 1; round <= size.rounds; round += 1) {
      exitCodes.push(...(await replaceAll(stack, balancer, size.drainedBy)));
      say(`rolling restart ${round}: ${answers.length} searches, ${tally(answers.map(({ status }) => status))}`);
    }
    isEnough = true;
    await load;
    await service.rest();
    const answered = answers.filter(({ status }) => status === 200).length;
    return rowsOf(size, answers, exitCodes, await auditCharges(service, organizationId, answered));
  } finally {
    isEnough = true;
    await balancer.stop();
  }
}

/** Replaces each API and each worker. @returns the exit codes of the old processes. */
async function replaceAll(
  { apis, workers }: ScenarioStack,
  balancer: LoadBalancer,
  drainedBy: RollingRestartSize["drainedBy"],
): Promise<(number | null)[]> {
  const exitCodes: (number | null)[] = [];
  const replaceApis = async () => {
    for (const api of apis) {
      const oldUrl = api.url ?? "";
      const exitCode = await api.rollOver(async () => {
        balancer.add(api);
        await balancer.untilReady(api.url ?? "");
        if (drainedBy === "removal") balancer.remove(oldUrl);
      });
      balancer.remove(oldUrl);
      exitCodes.push(exitCode);
    }
  };
  const replaceWorkers = async () => {
    for (const worker of workers) exitCodes.push(await worker.rollOver());
  };
  await Promise.all([replaceApis(), replaceWorkers()]);
  return exitCodes;
}

function rowsOf(
  size: RollingRestartSize,
  answers: readonly CallerAnswer[],
  exitCodes: readonly (number | null)[],
  broken: readonly string[],
): Row[] {
  const what = `${answers.length} searches, ${size.inFlight} in flight, while APIs and workers are replaced ${exitCodes.length} times`;
  const badExits = exitCodes.filter((code) => code !== 0);
  const failed = answers.filter(({ status }) => status !== 200);
  const ms = answers.map((answer) => answer.ms);
  return [
    {
      what,
      promised: "no search fails",
      seen: `${failed.length} failed (${tally(failed.map(({ status, text }) => `${status} ${text}`)).slice(0, 300)}); median ${quantile(ms, 0.5).toFixed(0)} ms, longest ${Math.max(...ms).toFixed(0)} ms`,
      held: failed.length === 0 && answers.length >= size.searches && exitCodes.length === 4 * size.rounds,
    },
    {
      what,
      promised: "each process exits with 0, and each answer is charged once",
      seen: [`${badExits.length} other exits`, ...broken].join("; "),
      held: badExits.length === 0 && broken.length === 0,
    },
  ];
}

import { setTimeout as sleep } from "node:timers/promises";
import { openLog } from "../../shared/log.ts";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import type { Say } from "../faults/report.ts";
import { type Drill, type DrillAlert, type DrillResult, groupWaitMs, lastingAlerts } from "./drill.ts";
import { type DrillStack, openDrillStack } from "./drill-stack.ts";

const alertsMsDefault = 300_000;
// On a busy machine searches may fail at first, and then SearchesFail lasts for five minutes.
const settledMsMax = 900_000;
const quietMsMax = 300_000;
const pollMs = 500;
const closeStepMs = 20_000;

/** What every step of a drill needs. */
interface Running {
  stack: DrillStack;
  say: Say;
  interrupted: AbortSignal;
}

/** Runs one drill on its own stack, which it always closes. @throws if the service does not settle first. */
export async function runDrill(drill: Drill, options: { say: Say; interrupted: AbortSignal }): Promise<DrillResult> {
  const { interrupted } = options;
  const say = (line: string) => options.say(`${drill.name}: ${line}`);
  const shutdown = new Shutdown(closeStepMs);
  const stopped = new Promise<never>((_, reject) => {
    interrupted.addEventListener("abort", () => reject(interrupted.reason), { once: true });
  });
  const opening = openDrillStack({ shutdown, interrupted }, drill.stack);
  const working = opening.then((stack) => carryOut(drill, { stack, say, interrupted }));
  try {
    return await Promise.race([working, stopped]);
  } finally {
    for (const promise of [working, stopped]) promise.catch(() => undefined); // After an interruption they fail.
    await Promise.allSettled([opening]); // It stops soon after an interruption. What it started by then is closed here.
    await shutdown.run(openLog({ name: "drill", level: "silent" }));
  }
}

async function carryOut(drill: Drill, running: Running): Promise<DrillResult> {
  const { stack, say } = running;
  say("waits until searches are answered and no alert is active");
  const before = await poll(running, settledMsMax, async () => (await troubles(stack)).length === 0);
  if (before === undefined) throw new Error(`not settled: ${(await troubles(stack)).join(", ")}`);

  const beganAtMs = performance.now();
  say(drill.outage);
  const mend = await drill.begin(stack);
  const missing = () => drill.expects.filter((name) => !stack.alertmanager.received.some((one) => one.name === name));
  await poll(running, drill.withinMs ?? alertsMsDefault, async () => missing().length === 0);
  const alerts = stack.alertmanager.received.map(
    ({ name, severity, atMs }): DrillAlert => ({ name, severity, afterMs: atMs - beganAtMs }),
  );
  for (const { name, severity, afterMs } of alerts) say(`${severity} ${name} after ${Math.round(afterMs / 1_000)} s`);
  const missed = missing();
  if (missed.length > 0) say(`did not come: ${missed.join(", ")}`);

  const page = alerts.find(({ severity }) => severity === "page");
  say("mends it, and waits until it is quiet");
  await mend();
  const quietAfterMs = await poll(running, quietMsMax, async () => (await troubles(stack, lastingAlerts)).length === 0);
  if (quietAfterMs === undefined) say(`not quiet: ${(await troubles(stack, lastingAlerts)).join(", ")}`);
  return {
    drill: drill.name,
    outage: drill.outage,
    isTotal: drill.isTotal ?? false,
    alerts,
    missing: missed,
    pagedAfterMs: page && page.afterMs + groupWaitMs,
    quietAfterMs,
  };
}

/** What is wrong: active alerts, processes that are not scraped, searches that fail. */
async function troubles({ prometheus, load }: DrillStack, ignored: ReadonlySet<string> = new Set()): Promise<string[]> {
  const active = (await prometheus.activeAlerts()).filter((name) => !ignored.has(name));
  const [scrapes = 0] = await prometheus.query('count(count_over_time(up{job=~"api|worker"}[1m]) >= 3 and up == 1)');
  return [
    ...active,
    ...(scrapes >= processes ? [] : [`${scrapes} of ${processes} processes are scraped`]),
    ...(load.isServed ? [] : ["searches fail"]),
  ];
}

// Two APIs and two workers.
const processes = 4;

/** Polls until it is true. @returns after how long, or undefined if it took longer than the bound. @throws when interrupted. */
async function poll(
  { interrupted }: Running,
  boundMs: number,
  isTrue: () => Promise<boolean>,
): Promise<number | undefined> {
  const beganAtMs = performance.now();
  while (!(await isTrue())) {
    if (performance.now() - beganAtMs > boundMs) return undefined;
    await sleep(pollMs, undefined, { signal: interrupted });
  }
  return performance.now() - beganAtMs;
}

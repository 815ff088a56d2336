import { setTimeout as sleep } from "node:timers/promises";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { Service } from "../../harness/processes/service.ts";
import { openProvider, type ProviderStub } from "../../faults/random/provider.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { compareBooks } from "./books.ts";
import type { Failover, FailoverContext, FailoverResult, StepOutage } from "./failover.ts";
import { outageMsOf } from "./outage.ts";
import { deadlineMs, Searches } from "./searches.ts";
import type { FailoverStack, Stores } from "./stores.ts";

const organizations = 4;
const creditMils = 1_000_000;
const providerMs = 50;
const flowingMsMax = 60_000;
const pollMs = 20;
const closeStepMs = 20_000;

/** Runs one failover on stores and processes of its own, which it always closes. */
export async function runFailover(failover: Failover, context: FailoverContext): Promise<FailoverResult> {
  const shutdown = new Shutdown(closeStepMs);
  try {
    const { stores, steps } = await failover.open(shutdown);
    const stack = await openStack(stores, shutdown);
    await untilFlowing(stack, performance.now(), context);
    const outages: { what: string | undefined; fromMs: number; sinceMs: number | undefined }[] = [];
    for (const { what, begin } of steps) {
      context.say(`${failover.name}: ${what ?? failover.what}`);
      const fromMs = performance.now();
      const answeredAtMs = await begin();
      outages.push({ what, fromMs, sinceMs: failover.since === "recovery" ? answeredAtMs : undefined });
      await untilFlowing(stack, performance.now(), context);
    }
    await stack.searches.stop();
    const { attempts } = stack.searches;
    const failed = attempts.filter(({ answer }) => answer?.status !== 200);
    return {
      name: failover.name,
      what: failover.what,
      outageMsMax: failover.outageMsMax,
      since: failover.since,
      searches: attempts.length,
      failed: tally(failed.map(({ answer, noAnswer }) => answer?.status ?? noAnswer ?? "")),
      failedCount: failed.length,
      outages: outages.map(({ what, fromMs, sinceMs }, at): StepOutage => {
        const toMs = outages[at + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
        return { what, outageMs: outageMsOf(attempts, { fromMs, toMs, sinceMs }) };
      }),
      restarts: [...stack.apis, ...stack.workers].reduce((sum, { runs }) => sum + runs.length - 1, 0),
      ...(await compareBooks(stack, failover.losesEntries ?? false)),
    };
  } finally {
    await shutdown.run(openLog({ name: "drill", level: "silent" }));
  }
}

async function openStack(stores: Stores, shutdown: Shutdown): Promise<FailoverStack> {
  const provider = await openProvider(() => providerMs);
  shutdown.register("provider", () => provider.close());
  const database = { url: stores.databaseUrl, drop: async () => undefined };
  const service = await Service.start({ apis: 0, workers: 0, servers: { database, redis: stores.redis } });
  shutdown.register("service", () => service.stop());
  const start = (kind: "api" | "worker", number: number) => {
    const environment = { ...service.environment, ...stores.settings(kind), ...settingsOf(provider) };
    const process = new SupervisedProcess({ kind, number, environment });
    process.restartsOnExit = true;
    shutdown.register(process.name, () => process.close());
    return process;
  };
  const workers = [start("worker", 0), start("worker", 1)];
  const apis = [start("api", 0), start("api", 1)] as const;
  await Promise.all([...workers, ...apis].map((process) => process.ready()));
  const terms = { windowLimit: 10_000_000, concurrency: 1_000 };
  const searchers = await Promise.all(
    Array.from({ length: organizations }, async () => {
      return { ...(await service.organization({ creditMils, terms })), grantedMils: creditMils };
    }),
  );
  const searches = new Searches(apis, searchers);
  shutdown.register("searches", () => searches.close());
  return { service, apis, workers, provider, searchers, searches };
}

const settingsOf = ({ url }: ProviderStub) => ({
  SERP_PROVIDERS: "serper",
  SERPER_API_KEY: "stub",
  SERPER_BASE_URL: url,
  SEARCH_DEADLINE_MS: String(deadlineMs),
});

/** Waits until searches that are sent from then on are answered at once, for a minute at most. */
async function untilFlowing({ searches }: FailoverStack, sinceMs: number, { interrupted }: FailoverContext) {
  const giveUpAtMs = performance.now() + flowingMsMax;
  while (!searches.isFlowing(sinceMs) && performance.now() < giveUpAtMs) {
    interrupted.throwIfAborted();
    await sleep(pollMs);
  }
}

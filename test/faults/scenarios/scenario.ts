import { createHistogram } from "node:perf_hooks";
import { startRedis } from "../../../shared/local/redis.ts";
import type { LocalServer } from "../../../shared/local/local-server.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { type SerperStub, startSerperStub, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import { Service } from "../../harness/processes/service.ts";
import type { Row, Say } from "../report.ts";
import { Callers } from "./callers.ts";

/** What a scenario needs from whoever runs it. */
export interface ScenarioServers {
  /** A running Postgres, in which it makes a database of its own. */
  postgresUrl: string;
  say: Say;
  /** An empty Redis of its own; without this a process is started. */
  startRedis?: () => Promise<LocalServer>;
}

/** A figure of the service, measured anew each time: what was promised, and what was seen. */
export interface Scenario {
  name: string;
  run: (surroundings: ScenarioServers) => Promise<Row[]>;
}

/** The whole service as real processes, the provider as a stub, and callers with connections of their own. */
export interface ScenarioStack {
  service: Service;
  provider: SerperStub;
  callers: Callers;
  say: Say;
}

/** Opens a scene, plays in it, and closes it whatever happens; an interrupted program leaves no process behind. */
export async function withStack<T>(
  surroundings: ScenarioServers,
  options: { apis: number; workers: number; providerMs: number; environment?: Record<string, string> },
  play: (scene: ScenarioStack) => Promise<T>,
): Promise<T> {
  const provider = await startSerperStub();
  provider.otherwise = (request, response) => setTimeout(tenOrganic, options.providerMs, request, response);
  const service = await startService(surroundings, options, provider.url).catch(async (error: unknown) => {
    await provider.close();
    throw error;
  });
  const callers = new Callers();
  const killAll = () => {
    for (const process of [...service.apis, ...service.workers]) process.kill("SIGKILL");
  };
  const interrupted = () => process.exit(1);
  process.on("exit", killAll).on("SIGINT", interrupted).on("SIGTERM", interrupted);
  try {
    return await play({ service, provider, callers, say: surroundings.say });
  } finally {
    process.off("exit", killAll).off("SIGINT", interrupted).off("SIGTERM", interrupted);
    await callers.close();
    await service.stop();
    await provider.close();
  }
}

async function startService(
  { postgresUrl, startRedis: start = startRedis }: ScenarioServers,
  { apis, workers, environment }: { apis: number; workers: number; environment?: Record<string, string> },
  providerUrl: string,
): Promise<Service> {
  const [database, redis] = await Promise.all([freshDatabaseIn(postgresUrl), start()]);
  const provider = { SERP_PROVIDERS: "serper", SERPER_API_KEY: "stub", SERPER_BASE_URL: providerUrl };
  const servers = { database, redis };
  return Service.start({ apis, workers, servers, environment: { ...provider, ...environment } }).catch(
    async (error: unknown) => {
      await redis.stop();
      await database.drop();
      throw error;
    },
  );
}

/** The time in milliseconds within which this share of the times lies; 0 of none. */
export function quantile(timesMs: readonly number[], share: number): number {
  const histogram = createHistogram(); // Of whole numbers from 1 on, so in microseconds.
  for (const ms of timesMs) histogram.record(Math.max(1, Math.round(ms * 1_000)));
  return timesMs.length === 0 ? 0 : histogram.percentile(share * 100) / 1_000;
}

/** How often each value occurs, as words: `4000 × 402, 1000 × 200`. */
export function tally(values: readonly (number | string)[]): string {
  const counts = [...Map.groupBy(values, (value) => value)].map(([value, same]) => ({ value, times: same.length }));
  return (
    counts
      .toSorted((one, other) => other.times - one.times)
      .map(({ value, times }) => `${times} × ${value}`)
      .join(", ") || "none"
  );
}

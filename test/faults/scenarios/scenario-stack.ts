import { startRedis } from "../../../local/redis.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { Service } from "../../harness/processes/service.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { startSerperStub, delayed } from "../../harness/stubs/serper-stub.ts";
import type { Row, Say } from "../report.ts";
import { Callers } from "./callers.ts";

/** The servers in which a scenario or an attack runs. */
export interface ScenarioServers {
  /** A running Postgres, in which it creates its database. */
  postgresUrl: string;
  say: Say;
  /** Starts an empty Redis; a local process by default. */
  startRedis?: () => Promise<LocalServer>;
}

/** The measurement of a promised figure. */
export interface Scenario {
  name: string;
  run: (servers: ScenarioServers) => Promise<Row[]>;
}

export interface ScenarioStackOptions {
  apis: number;
  workers: number;
  /** More settings for every process. */
  settings?: Record<string, string>;
}

export type ScenarioStack = Awaited<ReturnType<typeof openScenarioStack>>;

/** The whole service as real processes, a stub of the provider, and callers with their own connections. */
export async function openScenarioStack(servers: ScenarioServers, options: ScenarioStackOptions) {
  const { postgresUrl, say, startRedis: start = startRedis } = servers;
  const [database, redis, provider] = await Promise.all([freshDatabaseIn(postgresUrl), start(), startSerperStub()]);
  const service = await Service.start({ apis: 0, workers: 0, servers: { database, redis } });
  const environment = { ...service.environment, ...provider.settings, ...options.settings };
  const processes = (kind: "api" | "worker", count: number) =>
    Array.from({ length: count }, (_, number) => new SupervisedProcess({ kind, number, environment }));
  const [apis, workers] = [processes("api", options.apis), processes("worker", options.workers)];
  const callers = new Callers();
  /** The address of the n-th API, modulo their number. */
  const apiUrl = (n: number): string => {
    const url = apis[n % apis.length]?.url;
    if (url === undefined) throw new Error(`API ${n % apis.length} does not run`);
    return url;
  };
  /** Makes the provider answer each call after this delay. */
  const answerAfter = (providerMs: number): void => {
    provider.otherwise = delayed(providerMs);
  };
  const close = async () => {
    await callers.close();
    await Promise.all([...apis, ...workers].map((process) => process.close()));
    await service.stop();
    await provider.close();
  };
  try {
    await Promise.all([...apis, ...workers].map((process) => process.ready()));
  } catch (error) {
    await close();
    throw error;
  }
  return { service, provider, callers, apis, workers, say, apiUrl, answerAfter, close };
}

/** Opens a stack, uses it, and always closes it. */
export const withStack = async <T>(
  servers: ScenarioServers,
  options: ScenarioStackOptions,
  use: (stack: ScenarioStack) => Promise<T>,
): Promise<T> => useAndClose(await openScenarioStack(servers, options), use);

/** Uses something that is open, and always closes it. */
export async function useAndClose<S extends { close: () => Promise<void> }, T>(
  opened: S,
  use: (opened: S) => Promise<T>,
): Promise<T> {
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

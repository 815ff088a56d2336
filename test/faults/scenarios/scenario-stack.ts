import { startRedis } from "../../../local/redis.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { Service } from "../../harness/processes/service.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { type SerperStub, startSerperStub, delayed } from "../../harness/stubs/serper-stub.ts";
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

/** The whole service as real processes, a stub of the provider, and callers with their own connections. */
export class ScenarioStack {
  readonly service: Service;
  readonly provider: SerperStub;
  readonly callers = new Callers();
  readonly apis: readonly SupervisedProcess[];
  readonly workers: readonly SupervisedProcess[];
  readonly say: Say;

  private constructor(service: Service, provider: SerperStub, options: ScenarioStackOptions, say: Say) {
    this.service = service;
    this.provider = provider;
    this.say = say;
    const environment = { ...service.environment, ...provider.settings, ...options.settings };
    const processes = (kind: "api" | "worker", count: number) =>
      Array.from({ length: count }, (_, number) => new SupervisedProcess({ kind, number, environment }));
    this.apis = processes("api", options.apis);
    this.workers = processes("worker", options.workers);
  }

  static async open(servers: ScenarioServers, options: ScenarioStackOptions): Promise<ScenarioStack> {
    const { postgresUrl, say, startRedis: start = startRedis } = servers;
    const [database, redis, provider] = await Promise.all([freshDatabaseIn(postgresUrl), start(), startSerperStub()]);
    const service = await Service.start({ apis: 0, workers: 0, servers: { database, redis } });
    const stack = new ScenarioStack(service, provider, options, say);
    try {
      await Promise.all([...stack.apis, ...stack.workers].map((process) => process.ready()));
      return stack;
    } catch (error) {
      await stack.close();
      throw error;
    }
  }

  /** The address of the n-th API, modulo their number. */
  apiUrl(n: number): string {
    const url = this.apis[n % this.apis.length]?.url;
    if (url === undefined) throw new Error(`API ${n % this.apis.length} does not run`);
    return url;
  }

  /** Makes the provider answer each call after this delay. */
  answerAfter(providerMs: number): void {
    this.provider.otherwise = delayed(providerMs);
  }

  async close(): Promise<void> {
    await this.callers.close();
    await Promise.all([...this.apis, ...this.workers].map((process) => process.close()));
    await this.service.stop();
    await this.provider.close();
  }
}

/** Opens a stack, uses it, and always closes it. */
export const withStack = async <T>(
  servers: ScenarioServers,
  options: ScenarioStackOptions,
  use: (stack: ScenarioStack) => Promise<T>,
): Promise<T> => useAndClose(await ScenarioStack.open(servers, options), use);

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

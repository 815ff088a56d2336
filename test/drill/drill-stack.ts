import { readFile } from "node:fs/promises";
import { waitFor } from "../../shared/concurrency/wait-for.ts";
import { startPostgres } from "../../local/postgres.ts";
import { startRedis } from "../../local/redis.ts";
import type { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { type Prometheus, startPrometheus } from "../harness/servers/prometheus.ts";
import { type Proxy, startProxy } from "../harness/servers/proxy.ts";
import { type AlertmanagerStub, startAlertmanagerStub } from "../harness/stubs/alertmanager-stub.ts";
import { reply, type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";
import { contractCases } from "../worker/providers/contract-cases.ts";
import { SteadyLoad } from "./load.ts";
import { writePastTraffic } from "./past-traffic.ts";
import { configOf, openScrapeTargets } from "./scrape-targets.ts";

const redisBytesMax = 64 * 1_048_576;
const startMsMax = 300_000;
const creditMils = 1_000_000_000;
const shippedConfig = new URL("../../deploy/prometheus/prometheus.yml", import.meta.url);

export interface DrillStackOptions {
  /** Whether searches fall back to a second provider. */
  secondProvider?: true;
  /** The depth of the searches; 10 by default, which is one page. */
  depth?: number;
  /** More settings for every process. */
  settings?: Record<string, string>;
}

/** The servers, the processes, and the connections between them that a drill can break. */
interface WatchedService {
  service: Service;
  postgres: KillablePostgres;
  /** The first provider. */
  provider: SerperStub;
  stripe: StripeStub;
  apisToPostgres: Proxy;
  /** Of one of the two APIs that are there at first. */
  apiToRedis: Proxy;
  /** Of the first worker, and of the second. */
  workersToRedis: readonly [Proxy, Proxy];
  startApi: () => Promise<unknown>;
  /** Starts two workers, each with its own proxy to Redis. */
  startWorkers: () => Promise<unknown>;
}

/** The whole service under steady load, with two APIs and two workers, and the Prometheus that watches it. */
export interface DrillStack extends WatchedService {
  /** The organization that searches. */
  organization: Organization;
  load: SteadyLoad;
  prometheus: Prometheus;
  alertmanager: AlertmanagerStub;
}

interface Opening {
  /** Stops what was started, also if a later step fails. */
  shutdown: Shutdown;
  interrupted: AbortSignal;
}

/** Starts everything. @throws between two steps when interrupted. */
export async function openDrillStack(opening: Opening, options: DrillStackOptions = {}): Promise<DrillStack> {
  const { shutdown, interrupted } = opening;
  const watched = await openWatchedService(opening, options);
  const { service } = watched;
  const targets = await openScrapeTargets(service);
  shutdown.register("targets", targets.close);
  const alertmanager = await startAlertmanagerStub();
  shutdown.register("Alertmanager", alertmanager.close);
  const shipped = await readFile(shippedConfig, "utf8");
  const prometheus = await startPrometheus({
    prepare: writePastTraffic,
    config: (port) => configOf(shipped, { own: `127.0.0.1:${port}`, alertmanager: alertmanager.target, targets }),
  });
  shutdown.register("Prometheus", prometheus.stop);
  interrupted.throwIfAborted();
  const organization = await service.organization({ creditMils, terms: { windowLimit: 1_000_000 } });
  const load = new SteadyLoad(service, organization.token, options.depth);
  shutdown.register("load", () => load.stop());
  return { ...watched, organization, load, prometheus, alertmanager };
}

async function openWatchedService(
  { shutdown, interrupted }: Opening,
  options: DrillStackOptions,
): Promise<WatchedService> {
  const keep = async <T extends { close: () => unknown }>(starting: Promise<T>): Promise<T> => {
    const started = await starting;
    shutdown.register("server", () => started.close());
    interrupted.throwIfAborted();
    return started;
  };
  const postgres = await startKillablePostgres();
  shutdown.register("Postgres", postgres.stop);
  const redis = await startRedis({ extraArgs: ["--maxmemory", String(redisBytesMax)] });
  shutdown.register("Redis", redis.stop);
  const provider = await keep(startSerperStub());
  const second = await keep(startSerperStub());
  second.otherwise = reply(200, contractCases.dataforseo.page);
  const stripe = await keep(StripeStub.start());
  const both = {
    SERP_PROVIDERS: "serper,dataforseo",
    DATAFORSEO_LOGIN: "stub",
    DATAFORSEO_PASSWORD: "stub",
    DATAFORSEO_BASE_URL: second.url,
  };
  const environment = {
    ...provider.settings,
    ...(options.secondProvider && both),
    ...stripe.environment,
    ...options.settings,
  };
  // The database goes with its server, which an outage may have stopped by then.
  const database = { ...(await freshDatabaseIn(postgres.url)), drop: async () => undefined };
  const service = await Service.start({ apis: 0, workers: 0, environment, servers: { database, redis } });
  shutdown.register("service", () => service.stop());
  const apisToPostgres = await keep(startProxy(service.processDatabaseUrl));
  const apiToRedis = await keep(startProxy(redis.url));
  const workersToRedis = [await keep(startProxy(redis.url)), await keep(startProxy(redis.url))] as const;
  const startApi = (redisUrl = redis.url) =>
    service.startApi({ DATABASE_URL: apisToPostgres.url, REDIS_URL: redisUrl });
  const startWorkers = () => Promise.all(workersToRedis.map(({ url }) => service.startWorker({ REDIS_URL: url })));
  // After an interruption the terminal may have stopped them, so that they never become ready.
  const starting = startWorkers().then(() => Promise.all([startApi(apiToRedis.url), startApi()]));
  const { ended } = await waitFor(starting, { timeoutMs: startMsMax, signal: interrupted });
  if (ended !== "done") throw new Error("the processes were not ready in time");
  return { service, postgres, provider, stripe, apisToPostgres, apiToRedis, workersToRedis, startApi, startWorkers };
}

type KillablePostgres = Awaited<ReturnType<typeof startKillablePostgres>>;

/** A Postgres that can be killed and started again with its data. */
async function startKillablePostgres() {
  // The first one has the folder, and removes it.
  const first = await startPostgres();
  const { url, folder, port } = first;
  let current = first;
  const kill = async () => {
    current.kill("SIGKILL");
    await current.exited;
  };
  const restart = async () => {
    current = await startPostgres({ folder, port });
  };
  const stop = async () => {
    await current.stop();
    await first.stop();
  };
  return { url, kill, restart, stop };
}

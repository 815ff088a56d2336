import { setTimeout } from "node:timers/promises";
import { type Config, readConfig } from "../config.ts";
import { StartRefused } from "../config/start-refused.ts";
import { readRedisAddress } from "../config/redis-address.ts";
import { type Context, openContext } from "./context.ts";
import { refuseUnconfined } from "../database/pool.ts";
import { loadGazetteer } from "../gazetteer/gazetteer.ts";
import { type Log, openLog } from "../log.ts";
import { loadSubdivisions } from "../query/subdivisions.ts";
import { awaitSingleRedis } from "../redis/connect.ts";
import type { TracingParts } from "../tracing/opentelemetry.ts";
import { noTracing, type Tracing } from "../tracing/spans.ts";
import { logTrouble } from "./log-trouble.ts";
import { type OpsParts, startOpsServer } from "./ops-server.ts";

const databaseRetryMs = 1_000;

/**
 * Starts an API or a worker: settings, connections, signals, the ops port, then `open`. A wrong setting, a port that is in use or a
 * Redis Cluster ends the process at once with a line in the log; a Redis that is not reachable yet is awaited. A Postgres
 * that is not reachable yet delays nothing; if its sessions turn out to be unconfined, the process ends then.
 */
export async function startProcess(options: {
  name: "api" | "worker";
  databaseSizeMax: number;
  opsPort: (config: Config) => number;
  open: (context: Context) => Promise<OpsParts>;
}): Promise<void> {
  const config = configOrExit(options.name);
  const log = openLog({ name: options.name, level: config.LOG_LEVEL });
  logTrouble(log);
  // Here, and not in the first search that needs them, which would hold up all others.
  loadGazetteer();
  loadSubdivisions();
  const untraced = openContext({ ...options, config, log });
  const context = { ...untraced, tracing: await openTracing(untraced, options.name) };
  const { shutdown, redis, clock, database } = context;
  shutdown.onSignals(log);
  if (readRedisAddress(config.REDIS_URL)?.password === undefined)
    log.warn("REDIS_URL has no password. Give Redis the users of deploy/redis: docs/operating/datastores.md");
  try {
    const opened = await startOpsServer(context, options.opsPort(config));
    await awaitSingleRedis(redis, options.name, log);
    await clock.read(redis).catch(() => undefined); // If that fails, the next reading follows within a second.
    let isReached = await refuseUnconfined(database);
    opened(await options.open(context));
    log.info("started");
    while (!isReached && !database.ending) {
      await setTimeout(databaseRetryMs);
      isReached = await refuseUnconfined(database);
    }
  } catch (error) {
    logFailedStart(error, options.name, log);
    await shutdown.run(log);
    process.exit(1);
  }
}

/** Opens tracing for a process of this name, if it is configured. Otherwise OpenTelemetry is not even loaded. */
export async function openTracing(parts: TracingParts, name: string): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = parts.config;
  if (endpoint === undefined) return noTracing;
  const { openTelemetry } = await import("../tracing/opentelemetry.ts");
  return openTelemetry(parts, { endpoint, serviceName: parts.config.OTEL_SERVICE_NAME ?? `serpmill-${name}` });
}

function configOrExit(name: string): Config {
  const log = openLog({ name, level: "info" }); // LOG_LEVEL may be what is wrong.
  try {
    return readConfig();
  } catch (error) {
    logFailedStart(error, name, log);
    return process.exit(1);
  }
}

function logFailedStart(error: unknown, name: string, log: Log): void {
  if (error instanceof StartRefused) log.fatal(error.message);
  else log.fatal({ err: error }, `the ${name} could not start`);
}

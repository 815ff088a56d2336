import { type Config, ConfigError, readConfig } from "../config.ts";
import { type Context, openContext } from "../context.ts";
import { awaitReady } from "../redis/connect.ts";

/**
 * Starts an API or a worker: settings, connections, signals, then `open`. A wrong setting or a port that is in use ends
 * the process at once with a message; a Redis that is not reachable yet is awaited.
 */
export async function startProcess(options: {
  name: "api" | "worker";
  databaseSizeMax: number;
  open: (context: Context) => Promise<void>;
}): Promise<void> {
  const context = openContext({ ...options, config: configOrExit() });
  const { shutdown, log, redis } = context;
  shutdown.onSignals(log);
  if (new URL(context.config.REDIS_URL).password === "")
    log.warn("REDIS_URL has no password. Give Redis the users of deploy/redis: docs/operating/datastores.md");
  try {
    await awaitReady(redis, options.name, log);
    await options.open(context);
  } catch (error) {
    if (!(error instanceof ConfigError)) log.fatal({ err: error }, `the ${options.name} could not start`);
    await shutdown.run(log);
    exitWith(error);
  }
}

function configOrExit(): Config {
  try {
    return readConfig();
  } catch (error) {
    return exitWith(error);
  }
}

function exitWith(error: unknown): never {
  if (error instanceof ConfigError) process.stderr.write(`${error.message}\n`);
  process.exit(1);
}

import { onTestFinished } from "vitest";
import { openContext } from "../../../shared/context.ts";
import { openLog } from "../../../shared/log.ts";
import { type Engine, openSingleFlight } from "../../../worker/engine/single-flight.ts";
import { defineLeaseScripts } from "../../../worker/engine/flight-leases.ts";
import { openGoogleEngine } from "../../../worker/engine/google-engine.ts";
import { engineConfig, query } from "../fixtures/queries.ts";
import { eventually } from "../assertions/eventually.ts";

const remainingMs = 10_000;
const log = openLog({ name: "test", level: "silent" });

/** What one worker has of the engine, over Serper, with connections of its own. It closes with the test. */
export async function openWorkerEngine(settings: {
  REDIS_URL: string;
  SERPER_BASE_URL: string;
  [name: string]: string;
}) {
  const config = engineConfig({ SERP_PROVIDERS: "serper", SERPER_API_KEY: "secret", ...settings });
  const context = openContext({ config, name: "worker", databaseSizeMax: 1, log });
  const google = openGoogleEngine(context);
  context.shutdown.register("google", () => google.close());
  onTestFinished(() => context.shutdown.run(log));
  defineLeaseScripts(context.redis);
  await eventually(async () => context.redis.status === "ready");
  await context.clock.read(context.redis);
  const engine = openSingleFlight(context, google);
  const search = (fields: object = {}, options: Partial<Parameters<Engine["search"]>[0]> = {}) =>
    engine.search({ query: query(fields), remainingMs, enqueuedAtMs: context.clock.nowMs(), ...options });
  const metric = async (series: string) => {
    const line = (await context.metrics.registry.metrics()).split("\n").find((told) => told.startsWith(`${series} `));
    return Number(line?.split(" ").at(-1));
  };
  return { ...context, search, metric };
}

import { z } from "zod";
import { setPlan } from "../../../shared/credits/plans.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { containerEnvironment } from "../../harness/processes/container-heap.ts";
import { Service } from "../../harness/processes/service.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { loadResultSchema } from "../load/load.ts";
import { AskedProcess } from "../processes/asked-process.ts";
import { type Callers, type Contestant, organizationsMax, type ProcessKind } from "./contestant.ts";
import { openRedis, openRedisCounters } from "./durable-servers.ts";

const creditMils = 1_000_000_000;
const windowSeconds = 86_400;
// Its checksum is wrong, so the API refuses it without a look-up.
const unknownToken = `smk_${"0".repeat(39)}`;

/** How many processes the service has, and which provider its workers call. */
export interface Stage {
  apis: number;
  workers: number;
  /** The delay of a provider over HTTP. Without it, workers generate answers. */
  providerMs?: number;
  /** Whether workers keep their default limits, which bound the throughput of a slow provider. */
  hasDefaultLimits?: boolean;
  /** Whether the processes have the heap of the docker compose containers. */
  isContainer?: boolean;
  /** Whether searches are traced as by default, once there is a collector: one in a hundred. */
  isTraced?: boolean;
}

export interface SerpmillParts {
  stage: Stage;
  postgres: LocalServer & { statements: () => Promise<number> };
  generator: AskedProcess;
  shutdown: Shutdown;
}

/** Starts the service with a fresh database, its own Redis and a hundred organizations. */
export async function openSerpmill(parts: SerpmillParts): Promise<Contestant & { answer: unknown }> {
  const { stage, postgres, generator, shutdown } = parts;
  const provider = stage.providerMs === undefined ? undefined : await openProvider(stage.providerMs, shutdown);
  const collector = stage.isTraced ? await openCollector(shutdown) : {};
  const redis = await openRedis();
  const service = await Service.start({
    apis: stage.apis,
    workers: stage.workers,
    environment: {
      ...collector,
      ...provider?.settings,
      ...(provider && !stage.hasDefaultLimits && wideLimits),
      ...(stage.isContainer && containerEnvironment),
    },
    servers: { database: await freshDatabaseIn(postgres.url), redis },
  });
  shutdown.register("service", () => service.stop());
  const tokens = await createCallers(service);
  const urls = service.apis.map(({ url }) => url);
  const pids: Partial<Record<ProcessKind, readonly number[]>> = {
    api: service.apis.map(({ child }) => child.pid ?? 0),
    worker: service.workers.map(({ child }) => child.pid ?? 0),
    redis: [redis.pid],
    postgres: [postgres.pid],
    ...(provider && { provider: [provider.pid] }),
    generator: [generator.pid],
  };
  const search = (token = "") => service.search(token, { keyword: "best coffee beans" });
  await search(tokens.limited[0]); // Fills the rate window.
  const { body } = await search(tokens.one[0]);
  return {
    name: stage.isTraced ? "traced" : "serpmill",
    pids,
    readRedis: openRedisCounters(redis.url, shutdown),
    readStatements: postgres.statements,
    run: ({ callers, ...load }) => generator.ask(loadResultSchema, { ...load, urls, tokens: tokens[callers] }),
    answer: body,
  };
}

/** Starts a provider in Serper's format that answers each page after a delay, in a process of its own. */
async function openProvider(
  delayMs: number,
  shutdown: Shutdown,
): Promise<{ pid: number; settings: Record<string, string> }> {
  const provider = await AskedProcess.start(new URL("./provider-program.ts", import.meta.url));
  shutdown.register("provider", () => provider.stop());
  return { pid: provider.pid, settings: await provider.ask(z.record(z.string(), z.string()), { delayMs }) };
}

async function openCollector(shutdown: Shutdown): Promise<Record<string, string>> {
  const collector = await AskedProcess.start(new URL("./collector-program.ts", import.meta.url));
  shutdown.register("collector", () => collector.stop());
  return collector.ask(z.record(z.string(), z.string()), {});
}

// A search that waits for a provider costs almost nothing, so slow ones need many at once.
const wideLimits = { WORKER_CONCURRENCY: "1000", SERPER_CONCURRENCY: "1000" };

async function createCallers(service: Service): Promise<Record<Callers, string[]>> {
  const terms = { priceMils: 5, windowSeconds, concurrency: 1_000 };
  const wide = { ...terms, windowLimit: 100_000_000, operations: ["serp.search" as const, "usage.get" as const] };
  await setPlan(service.database, { ...wide, code: "bench" });
  const tokenOf = async (plan: Parameters<Service["organization"]>[0]) => (await service.organization(plan)).token;
  const hundred: string[] = [];
  for (let at = 0; at < organizationsMax; at += 1) hundred.push(await tokenOf({ creditMils, plan: "bench" }));
  const withLimits: string[] = [];
  for (const _ of hundred) {
    const { organizationId, tokenId, token } = await service.organization({ creditMils, plan: "bench" });
    const limits = { dayMils: creditMils, monthMils: creditMils };
    await changeLimits(service.database, "organization", organizationId, limits);
    await changeLimits(service.database, "token", tokenId, limits);
    withLimits.push(token);
  }
  const limited = await tokenOf({ creditMils, terms: { ...terms, windowLimit: 1 } });
  return {
    hundred,
    one: hundred.slice(0, 1),
    "spending-limits": withLimits,
    "without-credit": [await tokenOf({ creditMils: 0, plan: "bench" })],
    limited: [limited],
    unknown: [unknownToken],
  };
}

import { execFile } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { startGuardedProcess } from "../../../local/guarded-process.ts";
import { freePort } from "../../../local/ports.ts";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { loadResultSchema } from "../load/load.ts";
import type { AskedProcess } from "../processes/asked-process.ts";
import { type Contestant, organizationsMax } from "./contestant.ts";
import { openPostgres, openRedis, openRedisCounters } from "./durable-servers.ts";
import type { Stage } from "./serpmill.ts";

const seedTimeoutMs = 60_000;
const startTimeoutMs = 30_000;
const concurrency = "32";
const wideConcurrency = "1000";
const installTimeoutMs = 300_000;
const files = ["package.json", "api.js", "worker.js", "seed.js"];
// Its programs run with the Node of the benchmark, so no package needs to build or download anything.
const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];

/**
 * Starts another service with the same operation, from its folder, on its own servers. Its programs read REDIS_URL,
 * DATABASE_URL, PORT, CONCURRENCY, ORGS and, if its provider has a delay, PROVIDER_MS; its tokens are tok1, tok2 and so on.
 * @throws if it does not start.
 */
export async function openYardstick(
  folder: string,
  generator: AskedProcess,
  shutdown: Shutdown,
  { apis, workers, providerMs }: Pick<Stage, "apis" | "workers" | "providerMs"> = { apis: 1, workers: 1 },
): Promise<Contestant> {
  const cwd = await openYardstickFolder(folder, shutdown);
  const postgres = await openPostgres(shutdown);
  const redis = await openRedis();
  shutdown.register("Redis of the yardstick", redis.stop);
  const shared = {
    REDIS_URL: redis.url,
    DATABASE_URL: postgres.url,
    CONCURRENCY: providerMs === undefined ? concurrency : wideConcurrency,
    ORGS: String(organizationsMax),
    ...(providerMs !== undefined && { PROVIDER_MS: String(providerMs) }),
  };
  const seeding = { cwd, env: { ...shared, PORT: "0" }, timeout: seedTimeoutMs };
  await promisify(execFile)(process.execPath, ["seed.js"], seeding);
  const start = async (program: string, port = 0) => {
    const env = { ...shared, PORT: String(port) };
    const child = await startGuardedProcess(process.execPath, [program], {
      cwd,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    shutdown.register(`${program} of the yardstick`, child.stop);
    return child.pid;
  };
  const pids: Record<"api" | "worker", number[]> = { api: [], worker: [] };
  const urls: string[] = [];
  for (let at = 0; at < workers; at += 1) pids.worker.push(await start("worker.js"));
  for (let at = 0; at < apis; at += 1) {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    pids.api.push(await start("api.js", port));
    urls.push(url);
    const answers = async () => (await fetch(url)).status > 0;
    if (!(await becomes(answers, startTimeoutMs))) throw new Error("The yardstick's api.js does not answer.");
  }
  const hundred = Array.from({ length: organizationsMax }, (_, at) => `tok${at + 1}`);
  return {
    name: "yardstick",
    pids: { ...pids, redis: [redis.pid], postgres: [postgres.pid], generator: [generator.pid] },
    readRedis: openRedisCounters(redis.url, shutdown),
    readStatements: postgres.statements,
    run: ({ callers, ...load }) =>
      generator.ask(loadResultSchema, { ...load, urls, tokens: callers === "one" ? ["tok1"] : hundred }),
  };
}

/** @throws if the folder lacks a program of the yardstick. */
export function checkYardstick(folder: string): void {
  const missing = files.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0) throw new Error(`The yardstick's folder lacks ${missing.join(", ")}.`);
}

/** The folder, or a copy with its packages if it has none. The shutdown removes the copy. */
async function openYardstickFolder(folder: string, shutdown: Shutdown): Promise<string> {
  if (existsSync(join(folder, "node_modules"))) return resolve(folder);
  const copy = await GuardedFolder.create("serpmill-yardstick-");
  shutdown.register("folder of the yardstick", () => copy.remove());
  cpSync(folder, copy.path, { recursive: true });
  await promisify(execFile)("npm", install, { cwd: copy.path, timeout: installTimeoutMs });
  return copy.path;
}

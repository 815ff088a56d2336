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

const seedTimeoutMs = 60_000;
const startTimeoutMs = 30_000;
const concurrency = "32";
const installTimeoutMs = 300_000;
const files = ["package.json", "api.js", "worker.js", "seed.js"];
// Its programs run with the Node of the benchmark, so no package needs to build or download anything.
const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];

/**
 * Starts another service with the same operation, from its folder, on its own servers. Its programs read REDIS_URL,
 * DATABASE_URL, PORT, CONCURRENCY and ORGS; its tokens are tok1, tok2 and so on. @throws if it does not start.
 */
export async function openYardstick(folder: string, generator: AskedProcess, shutdown: Shutdown): Promise<Contestant> {
  const cwd = await openYardstickFolder(folder, shutdown);
  const postgres = await openPostgres(shutdown);
  const redis = await openRedis();
  shutdown.register("Redis of the yardstick", redis.stop);
  const port = await freePort();
  const env = {
    REDIS_URL: redis.url,
    DATABASE_URL: postgres.url,
    PORT: String(port),
    CONCURRENCY: concurrency,
    ORGS: String(organizationsMax),
  };
  await promisify(execFile)(process.execPath, ["seed.js"], { cwd, env, timeout: seedTimeoutMs });
  const start = async (program: string) => {
    const child = await startGuardedProcess(process.execPath, [program], {
      cwd,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    shutdown.register(`${program} of the yardstick`, child.stop);
    return child.pid;
  };
  const worker = await start("worker.js");
  const api = await start("api.js");
  const url = `http://127.0.0.1:${port}`;
  const answers = async () => (await fetch(url)).status > 0;
  if (!(await becomes(answers, startTimeoutMs))) throw new Error("The yardstick's api.js does not answer.");
  const hundred = Array.from({ length: organizationsMax }, (_, at) => `tok${at + 1}`);
  return {
    name: "yardstick",
    pids: { api: [api], worker: [worker], redis: [redis.pid], postgres: [postgres.pid], generator: [generator.pid] },
    readRedis: openRedisCounters(redis.url, shutdown),
    readStatements: postgres.statements,
    run: ({ callers, ...load }) =>
      generator.ask(loadResultSchema, { ...load, urls: [url], tokens: callers === "one" ? ["tok1"] : hundred }),
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

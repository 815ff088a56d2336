/**
 * `npm start` and `npm run dev`: the whole service on one machine that has Node and nothing else. Only this file and
 * shared/config.ts read `process.env`; this one because it sets the environment of the processes that it starts.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { addressSettings, type Config, readAddresses, readConfig, settingsAmong } from "../shared/config.ts";
import { migrate } from "../shared/database/migrate.ts";
import { createProcessLogin } from "../shared/database/process-login.ts";
import { requireReady } from "../shared/redis/connect.ts";
import { claimPort, freePort } from "./ports.ts";
import { processUrlOf, startPostgres } from "./postgres.ts";
import { startRedis } from "./redis.ts";
import { begin, fail, print, say, warn } from "./start-output.ts";
import type { LocalServer } from "./local-server.ts";
import { waitUntilWorkerIsSeen, welcome } from "./welcome.ts";
import {
  exitMessage,
  openLogFormat,
  startLoggedProcess,
  type LoggedProcess,
  waitUntilReady,
} from "./logged-process.ts";
import { withRedis } from "./with-redis.ts";

const checkout = join(import.meta.dirname, "..");
const parentPollMs = 250;
const stopTimeoutMs = 25_000; // There are four processes, and each is killed after 5 s.
const repeatedSignalMs = 1_000;
const redisTimeoutMs = 5_000;
// Only here is the sandbox a default: elsewhere its answers might be sold.
const sandboxed = { SERP_PROVIDERS: "sandbox" };
// In the file of the settings: which of its addresses are those of private servers.
const privateUrlsSetting = "SERPMILL_PRIVATE_URLS";

// `npm run dev`: the API and the worker restart when a file of theirs changes, and their logs are shown in readable form.
let isWatching = false;
let folder = join(checkout, ".serpmill");

// What was started is stopped in reverse, the worker first and Postgres last.
const started: { name: string; stop: () => Promise<void> }[] = [];
let stopping: Promise<void> | undefined;
let stoppingSinceMs = 0;
let stoppingName = "a step of the start";

const help = `npm start: runs Serpmill on this machine until Ctrl-C.
npm run dev: the same; restarts the API and the worker when a file changes, and shows their logs.

Starts a private Postgres and Redis on free ports of 127.0.0.1, migrates the database, starts the API and one
worker, creates an organization with credit and a token, and prints where everything is and a curl line that searches.
Its data, logs and token are in .serpmill/; delete that folder to start from scratch.
npm start -- --folder PATH keeps them in another folder.

Settings, all optional, from the environment, without the addresses of private servers from .serpmill/env:
  DATABASE_URL      use this Postgres instead of a private one; migrated as MIGRATION_DATABASE_URL if that is set
  REDIS_URL         use this Redis instead of a private one
  API_PORT          3000, or the next free port
  API_OPS_PORT      3001, or the next free port
  WORKER_OPS_PORT   3002, or the next free port
  HOST              127.0.0.1, the interface of these ports
  SERP_PROVIDERS    sandbox, which makes answers up
All other settings (see .env.example) are passed to the API and the worker. A secret may also come from a file: NAME_FILE=PATH.
`;

async function main(): Promise<void> {
  process.stdout.on("error", () => {}); // The terminal may be closed (SIGHUP); the processes still have to be stopped in order.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, answerSignal);
  if (process.env.npm_lifecycle_event !== undefined) stopWithParent();
  try {
    await startAll();
  } catch (error) {
    if (stopping === undefined) await end(1, reasonOf(error));
  }
}

// npm runs this file through a shell that forwards no signals. If npm is killed alone, the parent process id changes.
function stopWithParent(): void {
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || void end(0), parentPollMs).unref();
}

async function startAll(): Promise<void> {
  print("Starting Serpmill. Ctrl-C stops everything.\n");
  await mkdir(join(folder, "logs"), { recursive: true });
  forgetPrivateServers();
  const config = readConfig(process.env, {
    DATABASE_URL: "postgres://private",
    REDIS_URL: "redis://private",
    ...sandboxed,
  });
  const given = readAddresses();
  const { ownerUrl, processUrl } = await openPostgres(given);
  const redis = await openRedis(given.REDIS_URL, config);
  const addresses = { DATABASE_URL: processUrl, REDIS_URL: redis.api };
  const exported = {
    ...settingsAmong(process.env),
    ...addressSettings(addresses),
    ...(!process.env.SERP_PROVIDERS && sandboxed),
  };
  const servers = { ...process.env, ...exported };
  begin("Migrations", "bringing the database up to date");
  const applied = await migrate(ownerUrl, {
    say: (line) => warn("Migrations", line),
    setting: given.MIGRATION_DATABASE_URL && "MIGRATION_DATABASE_URL",
    ...(!given.DATABASE_URL && { remedy: `delete the folder ${shortened(folder)} and start again` }),
  });
  await createProcessLogin(ownerUrl, processUrl);
  say("Migrations", applied.length > 0 ? `applied ${applied.length}, up to ${applied.at(-1)}` : "none needed");

  const host = process.env.HOST || "127.0.0.1";
  const ports = {
    API_PORT: await claim("API_PORT", 3000, host),
    API_OPS_PORT: await claim("API_OPS_PORT", 3001, host),
    WORKER_OPS_PORT: await claim("WORKER_OPS_PORT", 3002, host),
  };
  const environment = { ...servers, ...ports };
  const reached = ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host;
  const urlOf = (port: string) => `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
  const api = await startOne("API", "api", environment);
  const worker = await startOne("Worker", "worker", { ...environment, REDIS_URL: redis.worker });
  begin("API, worker", "waiting until both are ready");
  await Promise.all([
    waitUntilReady(api, urlOf(ports.API_OPS_PORT)),
    waitUntilReady(worker, urlOf(ports.WORKER_OPS_PORT)),
  ]);
  say("API", `ready on ${urlOf(ports.API_PORT)}, metrics on ${urlOf(ports.API_OPS_PORT)}/metrics`);
  say("Worker", `ready, metrics on ${urlOf(ports.WORKER_OPS_PORT)}/metrics`);
  await waitUntilWorkerIsSeen(urlOf(ports.API_OPS_PORT));
  const privateUrls = [...(given.DATABASE_URL ? [] : [processUrl]), ...(given.REDIS_URL ? [] : [redis.api])];
  await writeSettings({ ...exported, [privateUrlsSetting]: privateUrls.join(" ") });
  const tokenFile = join(folder, "token");
  await welcome({
    apiUrl: urlOf(ports.API_PORT),
    callersUrl: urlOf(ports.API_PORT),
    tokenFile,
    shownTokenFile: shortened(tokenFile),
    operate: `. ${shortened(join(folder, "env"))} && npm run --silent admin -- --help`,
    environment,
  });
}

/** A shell that has sourced the file of the settings starts private servers all the same, and does not take them for the user's. */
function forgetPrivateServers(): void {
  const privateUrls = process.env[privateUrlsSetting]?.split(" ") ?? [];
  for (const name of ["DATABASE_URL", "REDIS_URL"])
    if (privateUrls.includes(process.env[name] ?? "")) delete process.env[name];
  delete process.env[privateUrlsSetting];
}

/** Writes settings to a file that a shell can source, for the operator's commands. */
async function writeSettings(settings: NodeJS.ProcessEnv): Promise<void> {
  const quoted = (value = "") => `'${value.replaceAll("'", String.raw`'\''`)}'`;
  const lines = Object.entries(settings).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
  await writeFile(join(folder, "env"), lines.join(""), { mode: 0o600 });
}

async function openPostgres(
  given: ReturnType<typeof readAddresses>,
): Promise<{ ownerUrl: string; processUrl: string }> {
  if (given.DATABASE_URL) {
    const processUrl = useExisting("Postgres", "DATABASE_URL", given.DATABASE_URL);
    return { ownerUrl: given.MIGRATION_DATABASE_URL ?? processUrl, processUrl };
  }
  begin("Postgres", "starting");
  const server = await startPostgres({ folder: join(folder, "postgres"), durable: true, say: sayOfPostgres });
  return { ownerUrl: keepRunning("Postgres", server), processUrl: processUrlOf(server.url) };
}

async function openRedis(url: string | undefined, config: Config): Promise<{ api: string; worker: string }> {
  if (url) {
    begin("Redis", "connecting");
    await withRedis(config, "silent", (redis) => requireReady(redis, url, redisTimeoutMs));
    return { api: useExisting("Redis", "REDIS_URL", url), worker: url };
  }
  const extraArgs = ["--maxmemory", "384mb"]; // As in docker compose.
  const options = { folder: join(folder, "redis"), durable: true, withUsers: true, extraArgs, say: sayOfRedis };
  begin("Redis", "starting");
  const server = await startRedis(options);
  keepRunning("Redis", server);
  return server.urls;
}

function useExisting(name: string, settingName: string, url: string): string {
  say(name, `from ${settingName}`);
  return url;
}

function keepRunning(name: string, server: LocalServer): string {
  const log = join(server.folder, "log");
  void watchOver(name, server, (reason) => `${name} ended by itself (${reason}). Its log: ${log}`);
  say(name, `started on 127.0.0.1:${server.port} (data in ${shortened(server.folder)})`);
  return server.url;
}

async function claim(settingName: string, usual: number, host: string): Promise<string> {
  const wanted = Number(process.env[settingName] || usual);
  const port = await claimPort(wanted === 0 ? await freePort() : wanted, host);
  if (wanted !== 0 && port !== wanted) warn("Ports", `${wanted} (${settingName}) is in use; using ${port}`);
  return String(port);
}

async function startOne(name: string, part: string, environment: NodeJS.ProcessEnv): Promise<LoggedProcess> {
  const logPath = join(folder, "logs", `${part}.log`);
  const mainFile = join(checkout, part, "main.ts");
  const child = await startLoggedProcess({
    name,
    mainFile,
    environment,
    logPath,
    ...(isWatching && { watched: [join(checkout, part), join(checkout, "shared")], format: await openLogFormat() }),
    say: isWatching ? print : (line) => warn(name, line),
  });
  void watchOver(name, child, (reason) => exitMessage(child, reason));
  begin(name, `starting (log in ${shortened(logPath)})`);
  return child;
}

/** Stops a process at the end. If it ends by itself before, stops all others and prints the reason. */
async function watchOver(
  name: string,
  { exited, stop, process: child }: Pick<LocalServer, "exited" | "stop"> & Partial<Pick<LoggedProcess, "process">>,
  describe: (reason: string) => string,
): Promise<void> {
  started.push({ name, stop });
  const reason = await exited;
  if (stopping === undefined) await end(child?.exitCode || 1, describe(reason));
}

/** Stops everything and ends this process. @param reason what went wrong; absent if it was asked to stop. */
function end(exitCode: number, reason?: string): Promise<void> {
  if (stopping === undefined) stoppingSinceMs = performance.now();
  stopping ??= stopAll(exitCode, reason);
  return stopping;
}

/** Ctrl-C may arrive twice, from the terminal and from npm. Only a later one is another press, which is answered too. */
function answerSignal(): void {
  if (stopping !== undefined && performance.now() - stoppingSinceMs > repeatedSignalMs)
    warn("Stopping", `waiting for ${stoppingName}, which is killed after 5 s`);
  void end(0);
}

// A process that is just starting is not on the list yet. Its guard stops it once this process has ended.
async function stopAll(exitCode: number, reason?: string): Promise<void> {
  if (reason !== undefined) fail(reason);
  print("\nStopping");
  setTimeout(() => process.exit(exitCode || 1), stopTimeoutMs);
  for (let last = started.pop(); last !== undefined; last = started.pop()) {
    stoppingName = last.name;
    await last.stop();
    say(last.name, "stopped");
  }
  process.exit(exitCode);
}

// Some errors, such as those of fetch, only say in their cause what failed.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && !error.message.includes(error.cause.message)
    ? `${error.message}\n${error.cause.message}`
    : error.message;
}

function shortened(path: string): string {
  const fromCheckout = relative(checkout, path);
  return fromCheckout.startsWith("..") ? path : fromCheckout;
}

const sayOfPostgres = (line: string) => begin("Postgres", line);
const sayOfRedis = (line: string) => begin("Redis", line);

if (import.meta.main) {
  try {
    const { values: given } = parseArgs({
      options: { help: { type: "boolean" }, watch: { type: "boolean" }, folder: { type: "string" } },
    });
    isWatching = given.watch === true;
    if (given.folder !== undefined) folder = resolve(given.folder);
    if (given.help) process.stdout.write(help);
    else await main();
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n\n${help}`);
    process.exitCode = 2;
  }
}

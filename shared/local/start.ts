/**
 * `npm start` and `npm run dev`: everything on one machine that has Node and nothing else. Besides shared/config.ts only this file reads
 * `process.env`, because it decides the environment that the processes get.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { migrate } from "../database/migrate.ts";
import { ensureDemoToken } from "./demo-token.ts";
import { claimPort, freePort } from "./ports.ts";
import { startPostgres } from "./postgres.ts";
import { startRedis } from "./redis.ts";
import type { LocalServer } from "./local-server.ts";
import { exitMessage, startLoggedProcess, type LoggedProcess, waitUntilReady } from "./logged-process.ts";

const checkout = join(import.meta.dirname, "..", "..");
const folder = join(checkout, ".serpmill");
const stopTimeoutMs = 25_000; // Four things to stop, of which each is killed after 5 s.
const parentPollMs = 250;
const workerPollMs = 50;
const labelWidth = 12;

// `npm run dev`: the API and the worker restart when a file of theirs changes, and their logs are shown in readable form.
const isWatching = process.argv.includes("--watch");

const help = `npm start: Serpmill on this machine, until Ctrl-C.
npm run dev: the same; restarts the API and the worker when a file changes, and shows their logs.

Starts a private Postgres and Redis on free ports of 127.0.0.1, brings the database up to date, starts the API and
one worker, makes an organization with credits and a token, and prints a curl line that searches with it.
Everything it keeps is in .serpmill/ (data, logs, token); remove that folder to begin anew.

Settings, all optional, from the environment:
  DATABASE_URL      use this Postgres instead of a private one
  REDIS_URL         use this Redis instead of a private one
  API_PORT          3000; if it is taken the next free port
  API_OPS_PORT      3001; likewise
  WORKER_OPS_PORT   3002; likewise
  HOST              127.0.0.1, the interface of these ports
All others (.env.example lists them) are passed on to the API and the worker.
`;

// What has been started, in order. Stopping goes backwards: the worker first, Postgres last.
const started: { name: string; stop: () => Promise<void> }[] = [];
let stopping: Promise<void> | undefined;

async function main(): Promise<void> {
  process.stdout.on("error", () => {}); // The terminal may be gone (SIGHUP); stopping in order matters more.
  // Ctrl-C may come twice, from the terminal and from npm. Only the first counts.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void end(0));
  if (process.env.npm_lifecycle_event !== undefined) stopWithParent();
  try {
    await startAll();
  } catch (error) {
    if (stopping === undefined) await end(1, reasonOf(error));
  }
}

// npm runs us through a shell that does not pass signals on. When it is killed alone, we notice by being adopted.
function stopWithParent(): void {
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || void end(0), parentPollMs).unref();
}

async function startAll(): Promise<void> {
  await mkdir(join(folder, "logs"), { recursive: true });
  const servers = { ...process.env, DATABASE_URL: await openPostgres(), REDIS_URL: await openRedis() };
  const applied = await migrate(servers.DATABASE_URL);
  say("Migrations", applied.length > 0 ? `applied ${applied.join(", ")}` : "the database is up to date");

  const host = process.env.HOST || "127.0.0.1";
  const ports = {
    API_PORT: await claim("API_PORT", 3000, host),
    API_OPS_PORT: await claim("API_OPS_PORT", 3001, host),
    WORKER_OPS_PORT: await claim("WORKER_OPS_PORT", 3002, host),
  };
  const environment = { ...servers, ...ports };
  const urlOf = (port: string) => `http://${["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host}:${port}`;
  const api = await startOne("API", "api", environment);
  const worker = await startOne("Worker", "worker", environment);
  await Promise.all([
    waitUntilReady(api, urlOf(ports.API_OPS_PORT)),
    waitUntilReady(worker, urlOf(ports.WORKER_OPS_PORT)),
  ]);
  say("API", `ready on ${urlOf(ports.API_PORT)}, metrics on ${urlOf(ports.API_OPS_PORT)}/metrics`);
  say("Worker", `ready, metrics on ${urlOf(ports.WORKER_OPS_PORT)}/metrics`);
  await untilWorkerSeen(urlOf(ports.API_OPS_PORT));
  await presentToken(urlOf(ports.API_PORT), environment);
  await keepAddresses(servers);
}

/** The API takes searches once it has seen a worker's report, a moment after both are ready. */
async function untilWorkerSeen(apiOpsUrl: string): Promise<void> {
  const isSeen = async () => /^workers_reporting [1-9]/m.test(await (await fetch(`${apiOpsUrl}/metrics`)).text());
  while (!(await isSeen())) await sleep(workerPollMs);
}

/** For the operator's commands, in a file that a shell reads. */
async function keepAddresses({ DATABASE_URL, REDIS_URL }: { DATABASE_URL: string; REDIS_URL: string }): Promise<void> {
  const file = join(folder, "env");
  await writeFile(file, `export DATABASE_URL='${DATABASE_URL}'\nexport REDIS_URL='${REDIS_URL}'\n`, { mode: 0o600 });
  print(
    `For the operator's commands:\n  . ${shortened(file)} && npm run --silent admin -- --help\n\nCtrl-C stops everything.`,
  );
}

async function openPostgres(): Promise<string> {
  const { DATABASE_URL } = process.env;
  if (DATABASE_URL) return useGiven("Postgres", "DATABASE_URL", DATABASE_URL);
  return own("Postgres", await startPostgres({ folder: join(folder, "postgres"), durable: true }));
}

async function openRedis(): Promise<string> {
  const { REDIS_URL } = process.env;
  if (REDIS_URL) return useGiven("Redis", "REDIS_URL", REDIS_URL);
  return own("Redis", await startRedis({ folder: join(folder, "redis"), durable: true, say: sayOfRedis }));
}

function useGiven(name: string, settingName: string, url: string): string {
  say(name, `the one in ${settingName}`);
  return url;
}

function own(name: string, server: LocalServer): string {
  started.push({ name, stop: server.stop });
  void endWith(
    server.exited,
    (reason) => `${name} ended by itself (${reason}). Its log is ${join(server.folder, "log")}`,
  );
  say(name, `started on 127.0.0.1:${server.port} (data in ${shortened(server.folder)})`);
  return server.url;
}

async function claim(settingName: string, usual: number, host: string): Promise<string> {
  const wanted = Number(process.env[settingName] || usual);
  if (!(Number.isInteger(wanted) && wanted >= 0)) throw new Error(`${settingName}: expected the number of a port`);
  const port = await claimPort(wanted === 0 ? await freePort() : wanted, host);
  if (wanted !== 0 && port !== wanted) say("Ports", `${wanted} (${settingName}) is taken, using ${port}`);
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
    say: isWatching ? print : (line) => say("", line),
  });
  started.push({ name, stop: child.stop });
  void endWith(child.exited, (reason) => exitMessage(child, reason), child);
  say(name, `starting (log in ${shortened(logPath)})`);
  return child;
}

/** A development dependency, so it is loaded only by `npm run dev`. */
async function openLogFormat(): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  const options = {
    colorize: process.stdout.isTTY,
    translateTime: "SYS:HH:MM:ss.l",
    ignore: "process,pid",
    singleLine: true,
  };
  const format = prettyFactory(options);
  return (line) => format(line).trimEnd();
}

async function presentToken(apiUrl: string, environment: NodeJS.ProcessEnv): Promise<void> {
  const tokenFile = join(folder, "token");
  const { token, isNew } = await ensureDemoToken(apiUrl, tokenFile, environment);
  say("Token", `${isNew ? "of a new organization with credits, kept" : "the one"} in ${shortened(tokenFile)}`);
  const header = `-H 'Authorization: Bearer ${token}'`;
  const body = `-H 'Content-Type: application/json' -d '{"keyword":"best coffee beans"}'`;
  print(`\nA search, and what it cost:\n  curl -s ${apiUrl}/v1/serp/search ${header} ${body}`);
  print(`What is left:\n  curl -s ${apiUrl}/v1/usage ${header}`);
  print(`In a browser: the reference ${apiUrl}/docs, the billing page ${apiUrl}/billing. For agents: ${apiUrl}/mcp`);
}

/** When something of ours ends although we are not stopping, all of it ends, and the reason is told. */
async function endWith(
  exited: Promise<string>,
  tell: (reason: string) => string,
  child?: LoggedProcess,
): Promise<void> {
  const reason = await exited;
  if (stopping === undefined) await end(child?.process.exitCode || 1, tell(reason));
}

function end(exitCode: number, reason?: string): Promise<void> {
  stopping ??= stopAll(exitCode, reason);
  return stopping;
}

// What is just being started is not on the list yet. Its guard stops it as soon as we are gone.
async function stopAll(exitCode: number, reason?: string): Promise<void> {
  if (reason !== undefined) print(`\n${reason}`);
  if (started.length > 0) print("\nStopping");
  setTimeout(() => process.exit(exitCode || 1), stopTimeoutMs);
  for (let last = started.pop(); last !== undefined; last = started.pop()) {
    await last.stop();
    say(last.name, "stopped");
  }
  process.exit(exitCode);
}

// The cause says more where the error only says that something failed, as with fetch.
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

const sayOfRedis = (line: string) => say("Redis", line);

const say = (label: string, text: string) => print(`${label.padEnd(labelWidth)}${text}`);

const print = (text: string) => void process.stdout.write(`${text}\n`);

if (import.meta.main) {
  if (process.argv.includes("--help")) process.stdout.write(help);
  else await main();
}

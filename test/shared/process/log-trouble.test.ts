import { once } from "node:events";
import { afterAll, expect, test } from "vitest";
import { type LogLine, RunningProcess } from "../../harness/processes/process.ts";
import { openThrottles } from "../../../shared/process/log-trouble.ts";
import { Service } from "../../harness/processes/service.ts";

/** Whatever happens, a program that reads the log of an API or a worker can parse each line. */

const closedPort = "127.0.0.1:1";

// What a library and Node do at worst, done on a signal by code that is loaded before ours.
const preload = `
  process.on("SIGUSR2", () => {
    for (const _ of [1, 2]) process.emitWarning("an injected warning");
    for (const _ of [1, 2]) console.warn("an injected %s", "text");
    setTimeout(() => { throw new Error("an injected error") });
  });
  process.on("SIGHUP", () => void Promise.reject(new Error("an injected rejection")));`;

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
await service.redis.call("ACL", "SETUSER", "powerless", "on", ">x", "~*", "&*", "-@all", "+hello", "+info", "+ping");

function start(kind: string, settings: Record<string, string> = {}): RunningProcess {
  return new RunningProcess(kind === "api" ? "api/main.ts" : "worker/main.ts", {
    ...service.environment,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
    ...settings,
  });
}

test("each line of a worker without Postgres is JSON, and an unhandled rejection ends it with 1, as its last line says", async () => {
  const process = start("worker", { DATABASE_URL: `postgres://${closedPort}/x` });
  await process.line("a step of maintenance failed: reconcile");
  const closed = once(process.child, "close");
  process.kill("SIGHUP");
  await closed;
  expect(process.child.exitCode).toBe(1);
  expect(process.noEntries).toEqual([]);
  expect(process.lines.at(-1)).toMatchObject({
    level: 60,
    origin: "unhandledRejection",
    err: { message: "an injected rejection" },
  });
});

test.each(["api", "worker"])("each line of the %s that Redis refuses its commands is JSON", async (kind) => {
  const REDIS_URL = service.redisServer.url.replace("//", "//powerless:x@");
  const process = start(kind, { REDIS_URL });
  const isRefused = (line: LogLine) => JSON.stringify(line).includes("NOPERM");
  await service.until(async () => process.lines.some(isRefused));
  await process.stop();
  expect(process.noEntries).toEqual([]);
});

test("what Node and libraries print is logged once, through a restart of Redis, and an error ends the process with 1", async () => {
  await service.redis.config("SET", "maxmemory-policy", "allkeys-lru");
  const process = start("worker");
  await process.line("a library wrote to the console");
  const { port } = service.redisServer;
  service.redisServer.kill("SIGKILL");
  await service.until(async () => process.lines.some(({ msg = "" }) => msg.startsWith("error on the Redis")));
  await service.restartRedis(port);
  const closed = once(process.child, "close");
  process.kill("SIGUSR2");
  await closed;
  expect(process.child.exitCode).toBe(1);
  expect(process.noEntries).toEqual([]);
  const logged = (msg: string) => process.lines.filter((line) => line.msg === msg);
  expect(logged("a warning of Node.js")).toMatchObject([
    { level: 40, leftOut: 0, err: { message: "an injected warning" } },
  ]);
  expect(logged("a library wrote to the console")).toMatchObject([
    { level: 40, text: expect.stringContaining("Eviction policy is allkeys-lru") },
    { level: 40, text: "an injected text" },
  ]);
  // Background work may still log that Redis was away.
  expect(logged("an uncaught error ends the process")).toMatchObject([
    { level: 60, err: { message: "an injected error", stack: expect.any(String) } },
  ]);
});

test("a text is logged once in its pause, and the oldest of more than 1,000 texts counts as new", () => {
  const written: [string, number][] = [];
  const write = (perText: ReturnType<typeof openThrottles>, text: string) =>
    perText(text, (leftOut) => written.push([text, leftOut]));
  const without = openThrottles(0);
  for (const text of ["a", "a", "b"]) write(without, text);
  expect(written.splice(0)).toEqual([
    ["a", 0],
    ["a", 0],
    ["b", 0],
  ]);
  const within = openThrottles(Number.POSITIVE_INFINITY);
  for (const text of ["a", "a", "b", "a"]) write(within, text);
  expect(written.splice(0)).toEqual([
    ["a", 0],
    ["b", 0],
  ]);
  for (let other = 1; other < 1_000; other += 1) write(within, `other ${other}`);
  expect(written.splice(0)).toHaveLength(999);
  for (const text of ["b", "a"]) write(within, text);
  expect(written).toEqual([["a", 0]]);
});

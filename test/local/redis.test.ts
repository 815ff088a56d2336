import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished, test, vi } from "vitest";
import { RedisBinaryNotFound } from "../../local/redis-binary.ts";
import { type LocalRedis, type RedisOptions, startRedis } from "../../local/redis.ts";
import type { LocalServer } from "../../local/local-server.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { acceptsLogin } from "../harness/servers/redis-users.ts";

test("a private Redis never evicts a hold or a job, and listens on 127.0.0.1 alone", async () => {
  const server = await start({});
  expect(await ask(server, "config", "get", "maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
  expect(await ask(server, "config", "get", "bind")).toEqual(["bind", "127.0.0.1"]);
});

test("a durable Redis that is stopped and restarted on the same port keeps its data", async () => {
  const folder = await newFolder();
  const first = await start({ folder, durable: true });
  await ask(first, "set", "kept", "42");
  await first.stop();
  const second = await start({ folder, durable: true, port: first.port });
  expect(second.url).toBe(first.url);
  expect(await ask(second, "get", "kept")).toBe("42");
});

test("a durable Redis that is killed restarts at once with its data", async () => {
  const folder = await newFolder();
  const first = await start({ folder, durable: true });
  await ask(first, "set", "kept", "42");
  first.kill("SIGKILL");
  expect(await first.exited).toBe("signal SIGKILL");
  const second = await start({ folder, durable: true, port: first.port });
  expect(await ask(second, "get", "kept")).toBe("42");
});

test("a durable Redis with users keeps what a script wrote, and refuses who has not logged in", async () => {
  const folder = await newFolder();
  const first = await start({ folder, durable: true, withUsers: true });
  const key = "{org_1}:kept";
  // Two writes of a script are a transaction in the append-only file.
  const script = `for at = 1, 2 do redis.call("hset", KEYS[1], at, "42") end`;
  await ask({ url: first.urls.api }, "eval", script, "1", key);
  await first.stop();
  const second = await start({ folder, durable: true, withUsers: true, port: first.port });
  expect(await ask({ url: second.urls.api }, "hmget", key, "1", "2")).toEqual(["42", "42"]);
  expect(await acceptsLogin(second.url)).toBe(false);
});

test("a throwaway Redis restarts empty and leaves no folder behind", async () => {
  const first = await start({});
  await ask(first, "set", "lost", "42");
  await first.stop();
  expect(existsSync(first.folder)).toBe(false);
  const second = await start({ port: first.port });
  expect(await ask(second, "get", "lost")).toBeNull();
});

test("a paused Redis can be stopped", async () => {
  const server = await start({});
  server.kill("SIGSTOP");
  await server.stop();
  expect(await server.exited).toBe("exit code 0");
});

test("a second Redis on the same folder is refused, so that two cannot ruin its data", async () => {
  const folder = await newFolder();
  const first = await start({ folder, durable: true });
  await expect(startRedis({ folder, durable: true })).rejects.toThrow(`as process ${first.pid}. Was it started twice`);
});

test("the error of a Redis whose port is in use names the port", async () => {
  const first = await start({});
  await expect(startRedis({ port: first.port })).rejects.toThrow(`another program uses port ${first.port}`);
});

test("without Redis and without apt-get, the error says what to install", async () => {
  const emptyFolder = await newFolder();
  vi.stubEnv("PATH", emptyFolder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const starting = startRedis({ downloadFolder: join(emptyFolder, "redis") });
  await expect(starting).rejects.toThrow(RedisBinaryNotFound);
  await expect(starting).rejects.toThrow("Install redis-server or valkey-server");
});

test("a server whose parent is killed stops by itself, and its folder is deleted", async () => {
  const script = `
    import { startRedis } from ${JSON.stringify(new URL("../../local/redis.ts", import.meta.url).href)};
    const { pid, folder } = await startRedis();
    process.stdout.write(JSON.stringify({ pid, folder }));
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  const [line] = await once(parent.stdout, "data");
  const { folder } = JSON.parse(String(line));
  expect(existsSync(folder)).toBe(true);
  parent.kill("SIGKILL");
  await eventually(async () => !existsSync(folder));
});

async function start(options: RedisOptions): Promise<LocalRedis> {
  const server = await startRedis(options);
  onTestFinished(server.stop);
  return server;
}

async function newFolder(): Promise<string> {
  const folder = await GuardedFolder.create("serpmill-test-");
  onTestFinished(() => folder.remove());
  return folder.path;
}

async function ask(server: Pick<LocalServer, "url">, command: string, ...args: string[]): Promise<unknown> {
  const redis = new Redis(server.url);
  try {
    return await redis.call(command, ...args);
  } finally {
    redis.disconnect();
  }
}

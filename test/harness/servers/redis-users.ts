import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import type { LocalServer } from "../../../local/local-server.ts";

export const startScript = fileURLToPath(new URL("../../../deploy/redis/start.sh", import.meta.url));
export const usualPasswords = {
  REDIS_API_PASSWORD: "of-the-api",
  REDIS_WORKER_PASSWORD: "of-the-worker",
  REDIS_REPLICA_PASSWORD: "of-the-replica",
  REDIS_SENTINEL_PASSWORD: "of-the-sentinels",
  REDIS_PROXY_PASSWORD: "of-the-proxy",
};

/**
 * Gives a running Redis the users of deploy/redis, read from what start.sh writes for a server. The test itself still
 * connects without a user and may do everything.
 * @param settings of start.sh: where it finds the passwords, and the file that it writes.
 * @returns the addresses for the API and the worker with the usual passwords.
 */
export async function addRedisUsers(
  server: LocalServer,
  settings: Record<string, string> = usualPasswords,
): Promise<{ api: string; worker: string }> {
  // A server in a container has no folder here.
  const folder = await mkdtemp(join(tmpdir(), "redis-users-"));
  const usersFile = settings["USERS_FILE"] ?? join(folder, "users.acl");
  const env = { PATH: "/usr/bin:/bin", ...settings, USERS_FILE: usersFile };
  await promisify(execFile)("/bin/sh", [startScript, "true"], { env });
  const redis = new Redis(server.url);
  try {
    for (const line of (await readFile(usersFile, "utf8")).split("\n").filter((text) => text !== "")) {
      const [, name = "", ...rules] = line.split(" ");
      if (name !== "default") await redis.call("ACL", "SETUSER", name, ...rules);
    }
  } finally {
    redis.disconnect();
    await rm(folder, { recursive: true });
  }
  return {
    api: addressOf("api", usualPasswords.REDIS_API_PASSWORD),
    worker: addressOf("worker", usualPasswords.REDIS_WORKER_PASSWORD),
  };

  function addressOf(username: string, password: string): string {
    return Object.assign(new URL(server.url), { username, password }).href;
  }
}

/** Whether Redis accepts the user and the password in this address. */
export async function acceptsLogin(url: string): Promise<boolean> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null });
  redis.on("error", () => undefined);
  const isAccepted = await redis.ping().then(
    () => true,
    (error: unknown) => String(error).includes("NOPERM"), // Some users may not even ping.
  );
  redis.disconnect();
  return isAccepted;
}

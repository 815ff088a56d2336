import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import type { LocalServer } from "../../../shared/local/local-server.ts";

const startScript = fileURLToPath(new URL("../../../deploy/redis/start.sh", import.meta.url));
const passwords = { REDIS_API_PASSWORD: "of-the-api", REDIS_WORKER_PASSWORD: "of-the-worker" };

/**
 * Gives a running Redis the users of deploy/redis, read from what start.sh writes for a server. The test itself still
 * connects without a user and may do everything.
 * @returns the addresses for the API and the worker.
 */
export async function addRedisUsers(server: LocalServer): Promise<{ api: string; worker: string }> {
  const usersFile = join(server.folder, "users.acl");
  const env = { PATH: "/usr/bin:/bin", USERS_FILE: usersFile, ...passwords };
  await promisify(execFile)("/bin/sh", [startScript, "true"], { env });
  const redis = new Redis(server.url);
  try {
    for (const line of (await readFile(usersFile, "utf8")).split("\n").filter((text) => text !== "")) {
      const [, name = "", ...rules] = line.split(" ");
      if (name !== "default") await redis.call("ACL", "SETUSER", name, ...rules);
    }
  } finally {
    redis.disconnect();
  }
  return {
    api: addressOf("api", passwords.REDIS_API_PASSWORD),
    worker: addressOf("worker", passwords.REDIS_WORKER_PASSWORD),
  };

  function addressOf(username: string, password: string): string {
    return Object.assign(new URL(server.url), { username, password }).href;
  }
}

import type { Redis } from "ioredis";
import { whenReady } from "../../shared/redis/connect.ts";
import { Clock } from "../../shared/redis/clock.ts";
import { failure, type Finding, ok, warning } from "./finding.ts";

const connectTimeoutMs = 3_000;
const oldestVersion = 7;
const fullShare = 0.8;

/** @returns findings about Redis, and its clock if it answered. */
export async function examineRedis(redis: Redis, url: string): Promise<{ findings: Finding[]; clock?: Clock }> {
  let refusal = "no answer";
  const noteRefusal = (error: Error) => (refusal = error.message);
  redis.on("error", noteRefusal);
  try {
    if (!(await whenReady(redis, connectTimeoutMs))) return { findings: [unreachable(refusal)] };
    const clock = new Clock();
    await clock.read(redis);
    const info = readInfo(await redis.info());
    const findings = [examineVersion(info), examineEviction(info), examinePersistence(info), examinePassword(url)];
    return { findings, clock };
  } catch (error) {
    return { findings: [unreachable(error instanceof Error ? error.message : refusal)] };
  } finally {
    redis.off("error", noteRefusal);
  }
}

const unreachable = (found: string) =>
  failure("redis", found, "Check REDIS_URL, and that the server runs and is reachable.");

type Info = (name: string) => string;

/** `name:value` lines, as INFO writes them. */
function readInfo(text: string): Info {
  const values = new Map(text.split("\r\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 1)]));
  return (name) => values.get(name) ?? "";
}

function examineVersion(info: Info): Finding {
  const valkey = info("valkey_version");
  const name = valkey === "" ? `Redis ${info("redis_version")}` : `Valkey ${valkey}`;
  if (info("redis_mode") === "cluster")
    return failure("redis", `${name}, a cluster`, "Use a single Redis or Valkey: docs/operating/datastores.md#redis");
  if (info("role") !== "master")
    return failure("redis", `${name}, a read-only replica`, "Point REDIS_URL to the primary.");
  if (Number.parseInt(info("redis_version"), 10) >= oldestVersion) return ok("redis", name);
  return failure("redis", name, `Use Redis ${oldestVersion} or newer, or Valkey.`);
}

function examineEviction(info: Info): Finding {
  const [policy, max, used] = [info("maxmemory_policy"), Number(info("maxmemory")), Number(info("used_memory"))];
  if (policy !== "noeviction")
    return failure(
      "redis",
      `evicts keys (${policy})`,
      "Set maxmemory-policy noeviction: an evicted key is a lost hold or answer.",
    );
  if (max === 0) return warning("redis", "has no maxmemory", "Set maxmemory: docs/operating/datastores.md#redis");
  const found = `evicts nothing, uses ${Math.round((100 * used) / max)} % of maxmemory`;
  if (used < fullShare * max) return ok("redis", found);
  return warning("redis", found, "Raise maxmemory: a full Redis rejects new searches.");
}

function examinePersistence(info: Info): Finding {
  if (info("aof_enabled") !== "1")
    return warning("redis", "keeps no append-only file", "Set appendonly yes: docs/operating/datastores.md#redis");
  if (info("aof_last_write_status") === "ok") return ok("redis", "keeps an append-only file");
  return failure("redis", "cannot write its append-only file", "Check the log of Redis. Its disk may be full.");
}

function examinePassword(url: string): Finding {
  if (new URL(url).password !== "") return ok("redis", "requires a password");
  return warning("redis", "requires no password", "Give it users: docs/operating/datastores.md#users");
}

import type { Redis } from "ioredis";
import { type Config, StartRefused } from "../shared/config.ts";
import { CommandRefused } from "./command-refused.ts";
import { refuseCluster, whenReady } from "../shared/redis/connect.ts";
import { isTransient, sqlStateOf } from "../shared/database/transient-errors.ts";

const redisTimeoutMs = 2_000;
const usualPorts = { postgres: "5432", redis: "6379" };
const redisError = /^(Stream isn't writeable|Connection is closed|Command timed out|LOADING|MASTERDOWN)/;
/** A login that is refused, and a database that does not exist. */
const refusedLogin = /^(28...|3D000)$/;
/** The connection failed, or the server starts, stops, or has no connection left. */
const goneState = /^(08...|57P0[1-5]|53...)$/;

/** Postgres or Redis did not answer. The message names it with its address, and never has a name of a user or a password. */
export class OutOfReach extends Error {}

/** The error of a command as an {@link OutOfReach}; undefined if it is of another kind. */
export function explainOutOfReach(error: unknown, config: Addresses): OutOfReach | undefined {
  if (!(error instanceof Error) || isSentence(error)) return undefined;
  if (redisError.test(error.message)) return redisOutOfReach(config, error.message);
  const state = sqlStateOf(error);
  if (state !== undefined && refusedLogin.test(state)) return postgresOutOfReach(config, "it refuses the login");
  if (state === undefined ? !isTransient(error) : !goneState.test(state)) return undefined;
  return postgresOutOfReach(config, reasonOf(error));
}

/** Whether the message of an error is a sentence for the operator that needs nothing more. */
export const isSentence = (error: unknown): boolean =>
  error instanceof CommandRefused || error instanceof StartRefused || error instanceof OutOfReach;

/** Waits until Redis takes commands. @throws {OutOfReach} after 2 s. @throws {StartRefused} if it is a Redis Cluster. */
export async function requireRedis({ redis, config }: { redis: Redis; config: Addresses }): Promise<void> {
  let reason = "no answer";
  const note = (error: Error) => (reason = reasonOf(error));
  redis.on("error", note);
  const isReady = await whenReady(redis, redisTimeoutMs);
  redis.off("error", note);
  if (!isReady) throw redisOutOfReach(config, reason);
  await refuseCluster(redis);
}

type Addresses = Pick<Config, "DATABASE_URL" | "REDIS_URL">;

const advice = "and that the server runs and is reachable.";

const postgresOutOfReach = ({ DATABASE_URL: url }: Addresses, reason: string) =>
  new OutOfReach(
    `Postgres at ${addressOf(url, usualPorts.postgres)} is unreachable: ${reason}. Check DATABASE_URL, ${advice}`,
  );

const redisOutOfReach = ({ REDIS_URL: url }: Addresses, reason: string) =>
  new OutOfReach(`Redis at ${addressOf(url, usualPorts.redis)} is unreachable: ${reason}. Check REDIS_URL, ${advice}`);

/** Host and port alone. A Postgres URL may name a folder of sockets as its parameter `host`. */
function addressOf(url: string, usualPort: string): string {
  const { hostname, port, searchParams } = new URL(url);
  return searchParams.get("host") ?? `${hostname || "localhost"}:${port || usualPort}`;
}

/** The first line. An error of a name with several addresses has a message in each of its errors only. */
function reasonOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const [line = ""] = (first instanceof Error ? first.message : String(first)).split("\n");
  return line.replace(/\.$/, "") || "no answer";
}

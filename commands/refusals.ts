import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Redis } from "ioredis";
import type { Config } from "../shared/config.ts";
import { StartRefused } from "../shared/config/start-refused.ts";
import { hostsOf } from "../shared/config/redis-address.ts";
import type { Database } from "../shared/database/pool.ts";
import type { Querying } from "../shared/database/transaction.ts";
import { isTransient, sqlStateOf } from "../shared/database/transient-errors.ts";
import { isErased, showOrganization } from "../shared/organizations/organizations.ts";
import { refuseCluster, whenReady } from "../shared/redis/connect.ts";

/** How long a command waits for Redis. */
export const redisTimeoutMs = 2_000;
const redisError = /^(Stream isn't writeable|Connection is closed|Command timed out|LOADING|MASTERDOWN)/;
/** A login that is refused, and a database that does not exist. */
const refusedLogin = /^(28...|3D000)$/;
/** The connection failed, or the server starts, stops, or has no connection left. */
const goneState = /^(08...|57P0[1-5]|53...)$/;

/** The command was refused. The message is the sentence that the operator gets, without a stack. */
export class CommandRefused extends Error {}

/** @throws {CommandRefused} if there is no such organization. */
export async function requireOrganization(database: Database, organizationId: string) {
  return (await showOrganization(database, organizationId)) ?? refuseUnknown(organizationId);
}

export function refuseUnknown(organizationId: string): never {
  throw new CommandRefused(`There is no organization ${organizationId}.`);
}

/** Makes a file that only the operator can read. @throws {CommandRefused} if there is one already, or none can be made. */
export async function openNew(path: string): Promise<FileHandle> {
  return open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new CommandRefused(`The folder ${dirname(path)} does not exist.`);
    if (error.code === "EEXIST") throw new CommandRefused(`The file ${path} exists already.`);
    throw new CommandRefused(`Cannot create the file: ${error.message}.`);
  });
}

/** @throws {CommandRefused} if the organization was erased: it never gets credit, tokens or a plan again. */
export async function refuseErased(transaction: Querying, organizationId: string): Promise<void> {
  if (await isErased(transaction, organizationId))
    throw new CommandRefused(`The organization ${organizationId} was erased.`);
}

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

const outOfReach =
  (name: string, setting: keyof Addresses, addressOf: (url: string) => string) => (config: Addresses, reason: string) =>
    new OutOfReach(
      `${name} at ${addressOf(config[setting])} is unreachable: ${reason}. Check ${setting}, and that the server runs and is reachable.`,
    );
const postgresOutOfReach = outOfReach("Postgres", "DATABASE_URL", postgresAddress);
const redisOutOfReach = outOfReach("Redis", "REDIS_URL", hostsOf);

/** Host and port alone. The URL may name a folder of sockets as its parameter `host`. */
function postgresAddress(url: string): string {
  const { hostname, port, searchParams } = new URL(url);
  return searchParams.get("host") ?? `${hostname || "localhost"}:${port || "5432"}`;
}

/** The first line. An error of a name with several addresses has a message in each of its errors only. */
function reasonOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const [line = ""] = (first instanceof Error ? first.message : String(first)).split("\n");
  return line.replace(/\.$/, "") || "no answer";
}

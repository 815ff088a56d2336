import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Redis } from "ioredis";
import type { Config } from "../shared/config.ts";
import { StartRefused } from "../shared/config/start-refused.ts";
import { OutOfReach, redisOutOfReach } from "../shared/config/out-of-reach.ts";
import type { Database } from "../shared/database/pool.ts";
import type { Querying } from "../shared/database/transaction.ts";
import { explainPostgres } from "../shared/database/transient-errors.ts";
import { isErased, showOrganization } from "../shared/organizations/organizations.ts";
import { requireReady } from "../shared/redis/connect.ts";

/** How long a command waits for Redis. */
export const redisTimeoutMs = 2_000;
const redisError = /^(Stream isn't writeable|Connection is closed|Command timed out|LOADING|MASTERDOWN)/;

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

/** The error of a command as an {@link OutOfReach}; undefined if it is of another kind. */
export function explainOutOfReach(error: unknown, config: Addresses): OutOfReach | undefined {
  if (!(error instanceof Error) || isSentence(error)) return undefined;
  if (redisError.test(error.message)) return redisOutOfReach(config.REDIS_URL, error.message);
  return explainPostgres(error, config.DATABASE_URL);
}

/** Whether the message of an error is a sentence for the operator that needs nothing more. */
export const isSentence = (error: unknown): boolean =>
  error instanceof CommandRefused || error instanceof StartRefused || error instanceof OutOfReach;

/** Waits until Redis takes commands. @throws {OutOfReach} after 2 s. @throws {StartRefused} if it is a Redis Cluster. */
export const requireRedis = ({ redis, config }: { redis: Redis; config: Addresses }): Promise<void> =>
  requireReady(redis, config.REDIS_URL, redisTimeoutMs);

type Addresses = Pick<Config, "DATABASE_URL" | "REDIS_URL">;

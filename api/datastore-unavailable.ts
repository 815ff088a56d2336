import { z } from "zod";
import { isTransient } from "../shared/database/transient-errors.ts";
import { CallerError } from "../shared/errors.ts";
import { unavailable } from "./errors.ts";

/**
 * How the whole API answers when Redis or Postgres fails: with a 503 if the failure passes by itself, or once an operator has
 * mended the server or the login. Anything else is a defect of ours: it is rethrown, logged, and becomes a 500.
 */

/** Whether an error is a defect: of our code, or of data in Redis that a script cannot read. */
export function isDefect(error: unknown): boolean {
  const { message = "" } = error instanceof Error ? error : {};
  return (
    [z.ZodError, TypeError, RangeError, ReferenceError].some((kind) => error instanceof kind) ||
    /^WRONGTYPE |^ERR .*user_script/.test(message)
  );
}

/** What a failure of a Redis command is to a caller: `unavailable`, reason `redis_unreachable`; a defect unchanged. */
export function redisFailure(error: unknown): unknown {
  return error instanceof CallerError || isDefect(error) ? error : unavailable("redis_unreachable");
}

/** @throws what {@link redisFailure} makes of a failure of the command. */
export async function orRedisUnavailable<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    throw redisFailure(error);
  }
}

/** @throws {CallerError} `unavailable`, reason `postgres_unreachable`, for a failure of Postgres; a defect unchanged. */
export async function orPostgresUnavailable<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (error) {
    if (error instanceof CallerError || isDefect(error)) throw error;
    throw isTransient(error) ? unavailable("postgres_unreachable") : error;
  }
}

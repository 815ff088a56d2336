import { isTransient } from "../shared/database/transient-errors.ts";
import { unavailable } from "./errors.ts";

/** Turns every failure of a Redis command into a 503. @throws {CallerError} `unavailable`, reason `redis_unreachable`. */
export async function orRedisUnavailable<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch {
    throw unavailable("redis_unreachable");
  }
}

/**
 * Turns the failures of Postgres that pass by themselves into a 503; every other error is rethrown unchanged.
 * @throws {CallerError} `unavailable`, reason `postgres_unreachable`.
 */
export async function orPostgresUnavailable<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (error) {
    throw isTransient(error) ? unavailable("postgres_unreachable") : error;
  }
}

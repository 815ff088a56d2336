import pg from "pg";

/**
 * SQLSTATEs after which the same statement may succeed: serialization failure, deadlock, lock and statement timeouts, and a
 * server that is starting, stopping, full, read-only or out of connections.
 */
const transientStates = /^(40001|40P01|55P03|57014|57P0[1-5]|53...|08...|25006|58...|XX000)$/;
const transientMessages =
  /connection|timeout|timed out|terminated|ECONN|EPIPE|ETIMEDOUT|E(?:HOST|NET)(?:UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN/i;

/**
 * Whether to retry a failed statement. The first attempt may have been committed all the same; every statement here is
 * written so that a second run detects that.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = sqlStateOf(error);
  if (state !== undefined) return transientStates.test(state);
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return transientMessages.test(code) || transientMessages.test(error.message);
}

/** Whether a statement waited longer than it may for a lock that another transaction holds. */
export const isLockTimeout = (error: unknown): boolean => sqlStateOf(error) === "55P03";

/** The SQLSTATE with which Postgres refused a statement; undefined for other errors, as on the network. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

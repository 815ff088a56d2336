import pg from "pg";

/** SQLSTATEs after which the same statement may succeed: serialisation, deadlock, lock and statement time-outs, and a
 * server that is starting, stopping, full, read-only or out of connections. */
const passingStates = /^(40001|40P01|55P03|57014|57P0[1-5]|53...|08...|25006|58...|XX000)$/;
const passingMessages =
  /connection|timeout|terminated|ECONN|EPIPE|ETIMEDOUT|E(?:HOST|NET)(?:UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN/i;

/**
 * Whether a failed statement may be sent again. Its first copy may have been committed all the same; every statement of
 * ours is written so that a second run finds that out.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = sqlStateOf(error);
  if (state !== undefined) return passingStates.test(state);
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return passingMessages.test(code) || passingMessages.test(error.message);
}

/** The SQLSTATE with which Postgres refused a statement; undefined for what failed elsewhere, on the network say. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

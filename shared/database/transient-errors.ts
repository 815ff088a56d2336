import pg from "pg";
import { type OutOfReach, postgresOutOfReach, reasonOf } from "../config/out-of-reach.ts";

/**
 * SQLSTATEs after which the same statement may succeed: serialization failure, deadlock, lock and statement timeouts, and a
 * server that is starting, stopping, full, read-only or out of connections. A missing privilege is one of them: a migration
 * sets the privileges, or repairs them after a restore.
 */
const transientStates = /^(40001|40P01|42501|55P03|57014|57P0[1-5]|53...|08...|25006|58...|XX000)$/;
/** Postgres refuses a statement at once with these if another transaction changes what the statement uses. */
const changingStates = /^(40001|40P01|42501|XX000)$/;
/**
 * A login that is refused, and a database that does not exist or takes no connections. It passes: the password is being replaced,
 * or the database is being restored.
 */
const refusedLogin = /^(28...|3D000|55000)$/;
/** The connection failed, or the server starts, stops, or has no connection left. */
const goneState = /^(08...|57P0[1-5]|53...)$/;
const transientMessages =
  /connection|timeout|timed out|terminated|ECONN|EPIPE|ETIMEDOUT|E(?:HOST|NET)(?:UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN|^SASL:/i;
/** TLS failed, or the certificate is not trusted: it expired, or names another host. It passes once an operator has renewed it. */
const refusedCertificate =
  /CERT|^(?:UNABLE_TO_|ERR_(?:TLS|SSL)_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_)|^EPROTO$/;

/**
 * Whether to retry a failed statement. The first attempt may have been committed all the same; every statement here is
 * written so that a second run detects that.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = sqlStateOf(error);
  if (state !== undefined) return transientStates.test(state) || refusedLogin.test(state);
  // A Unix socket whose server has stopped is a file that is missing.
  if ("syscall" in error && error.syscall === "connect") return true;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return refusedCertificate.test(code) || transientMessages.test(code) || transientMessages.test(error.message);
}

/** Whether a statement met a migration: once the migration has committed, the same statement passes. */
export const isRefusedByChange = (error: unknown): boolean => changingStates.test(sqlStateOf(error) ?? "");

/** Whether Postgres ended a transaction because it and others waited for each other. */
export const isDeadlock = (error: unknown): boolean => sqlStateOf(error) === "40P01";

/** Whether a statement waited longer than it may for a lock that another transaction holds. */
export const isLockTimeout = (error: unknown): boolean => sqlStateOf(error) === "55P03";

/** Whether Postgres takes no writes: a pooler may lead to a server that became a standby. */
export const isReadOnly = (error: unknown): boolean => sqlStateOf(error) === "25006";

/** The SQLSTATE of a statement that Postgres refused; undefined for other errors, such as those of the network. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/**
 * The error of a connection to Postgres, or of a server that takes no writes, as a sentence for the operator; undefined if it is
 * of another kind.
 * @param setting has the URL.
 */
export function explainPostgres(error: unknown, url: string, setting?: string): OutOfReach | undefined {
  if (!(error instanceof Error)) return undefined;
  const state = sqlStateOf(error);
  if (state !== undefined && refusedLogin.test(state)) return postgresOutOfReach(url, "refuses the login", setting);
  if (isReadOnly(error)) return postgresOutOfReach(url, "takes no writes, as a standby does", setting);
  if (state === undefined ? !isTransient(error) : !goneState.test(state)) return undefined;
  return postgresOutOfReach(url, `is unreachable: ${reasonOf(error)}`, setting);
}

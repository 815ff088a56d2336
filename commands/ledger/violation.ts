import type { PoolClient } from "pg";

/** A broken invariant, as `ledger verify` reports it. */
export interface Violation {
  rule: string;
  /** The organization or request that breaks it. */
  subject: string;
  found: string;
}

export const verifyStatementTimeoutMs = 600_000;

/**
 * Runs a statement that reads whole tables: the pool's own timeout is for statements on the path of a search. The type of
 * `pg` does not have the field.
 */
export const queryAll = (client: PoolClient, text: string, values: unknown[] = []) =>
  client.query({ text, values, query_timeout: verifyStatementTimeoutMs } as { text: string; values: unknown[] });

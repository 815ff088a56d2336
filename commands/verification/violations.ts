import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { inLongTransaction, type LongQuery } from "../../shared/database/transaction.ts";

/** How many violations of a rule are listed. */
export const shownMax = 20;

/** A broken invariant, as `ledger verify` reports it. */
export interface Violation {
  rule: string;
  /** The organization, token or request that breaks it. */
  subject: string;
  found: string;
}

/** The violations found so far, at most twenty of each rule. */
export class FoundViolations {
  readonly list: Violation[] = [];
  readonly #counts = new Map<string, number>();

  add(...violations: readonly Violation[]): void {
    for (const violation of violations) {
      const count = (this.#counts.get(violation.rule) ?? 0) + 1;
      this.#counts.set(violation.rule, count);
      if (count <= shownMax) this.list.push(violation);
    }
  }
}

const violationRow = z.object({ subject: z.string(), found: z.string() });

/** Runs a query that finds the violations of a rule, as rows of `subject` and `found`. */
export async function violationsOf(
  read: LongQuery,
  rule: string,
  query: string,
  values?: unknown[],
): Promise<Violation[]> {
  const { rows } = await read(`${query} limit ${shownMax}`, values);
  return rows.map((row) => ({ rule, ...violationRow.parse(row) }));
}

/** The statements look rows up by indexes: their parts are small beside the tables. */
const planning = ["work_mem = '32MB'", "enable_seqscan = off", "enable_hashjoin = off", "enable_mergejoin = off"];

/**
 * Reads part of the database in a transaction of its own, which must be short: while one lasts, Postgres cannot clean up behind
 * the settlements.
 */
export const readPart = <Result>(database: Database, part: (read: LongQuery) => Promise<Result>): Promise<Result> =>
  inLongTransaction(database, planning, part);

/** Entries of an organization's ledger, from one version to before another. */
export interface LedgerPart<Account> {
  account: Account;
  firstVersion: number;
  nextVersion: number;
}

/** Cuts ledgers into slices of so many entries: several small ones in one slice, and a large one in several. */
export function* slicesOf<Account>(
  ledgers: readonly LedgerPart<Account>[],
  entriesPerSlice: number,
): Generator<LedgerPart<Account>[]> {
  let slice: LedgerPart<Account>[] = [];
  let left = entriesPerSlice;
  for (const { account, firstVersion, nextVersion: end } of ledgers) {
    for (let next = firstVersion; next < end; ) {
      const nextVersion = Math.min(end, next + left);
      slice.push({ account, firstVersion: next, nextVersion });
      left -= nextVersion - next;
      next = nextVersion;
      if (left > 0) continue;
      yield slice;
      [slice, left] = [[], entriesPerSlice];
    }
  }
  if (slice.length > 0) yield slice;
}

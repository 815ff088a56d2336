import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import { pagesOfOrganizations } from "../../shared/organizations/organizations.ts";
import { CommandRefused } from "../refusals.ts";
import { type LedgerPart, readPart, slicesOf } from "../verification/violations.ts";

const organizationsPerPage = 500;
/** Read in one transaction, which takes a fraction of a second. */
const entriesPerSlice = 10_000;

/** What an archive has. */
export interface MonthTotals {
  organizations: number;
  entries: number;
  amountMils: number;
}

/** What was read of an organization in this month. */
interface Account {
  id: string;
  firstVersion: number;
  /** The version of its first entry after the month. */
  nextVersion: number;
  amountMils: number;
  balanceBeforeMils: number;
  balanceAfterMils: number;
}

/**
 * A month of the ledger as lines of JSON, in slices with the totals up to there: no transaction is long, and memory is bounded.
 * First a line with the month; then the entries of each organization, in their order, and a line with their total; at the end the
 * totals of all. Entries never change, so a month that is over gives the same lines for ever.
 * @throws {CommandRefused} if entries are missing, or do not add up.
 */
export async function* readMonthLines(
  database: Database,
  month: string,
): AsyncGenerator<{ lines: string[]; totals: MonthTotals }> {
  const totals: MonthTotals = { organizations: 0, entries: 0, amountMils: 0 };
  yield { lines: [JSON.stringify({ kind: "ledger", month })], totals };
  for await (const ids of pagesOfOrganizations(database, organizationsPerPage)) {
    const accounts = await readAccounts(database, month, ids);
    const ledgers = accounts.map((account) => ({ account, ...account }));
    for (const slice of slicesOf(ledgers, entriesPerSlice)) {
      const lines = await readSlice(database, slice);
      for (const { account, nextVersion } of slice) {
        if (nextVersion < account.nextVersion) continue; // The next slice goes on with it.
        totals.organizations += 1;
        totals.entries += account.nextVersion - account.firstVersion;
        totals.amountMils += account.amountMils;
      }
      yield { lines, totals };
    }
  }
  yield { lines: [JSON.stringify({ kind: "end", month, ...totals })], totals };
}

const monthBegins = "(($1 || '-01')::timestamp at time zone 'UTC')";
/** Of the month in `$1`. */
export const monthEnds = "((($1 || '-01')::timestamp + interval '1 month') at time zone 'UTC')";

// The search for a version finds none where the ledger lacks an entry.
const version = z.number().nullable();
const accountRow = rowOf({ id: z.string(), firstVersion: version, nextVersion: version });

/** Those of the organizations that have entries in the month. */
async function readAccounts(database: Database, month: string, ids: string[]): Promise<Account[]> {
  const { rows } = await readPart(database, (read) =>
    read(
      `select o.id, first_version_since(o.id, ${monthBegins}) as first_version, first_version_since(o.id, ${monthEnds}) as next_version
       from organizations o where o.id = any($2) order by o.id`,
      [month, ids],
    ),
  );
  const found = rows.map((row) => {
    const { id, firstVersion, nextVersion } = accountRow.parse(row);
    if (firstVersion === null || nextVersion === null) refuse(id, "lacks an entry");
    return { id, firstVersion, nextVersion, amountMils: 0, balanceBeforeMils: 0, balanceAfterMils: 0 };
  });
  return found.filter(({ firstVersion, nextVersion }) => firstVersion < nextVersion);
}

const entryRow = rowOf({
  orgId: z.string(),
  version: z.number(),
  at: z.string(),
  entry: z.string(),
  amountMils: z.number(),
  balanceAfterMils: z.number(),
  requestId: z.string().nullable(),
  grantId: z.string().nullable(),
  tokenId: z.string().nullable(),
  reason: z.string().nullable(),
});

/** Reads the entries of a slice as lines, with the total behind the last one of an organization. */
async function readSlice(database: Database, slice: readonly LedgerPart<Account>[]): Promise<string[]> {
  const { rows } = await readPart(database, (read) =>
    read(
      `select e.organization_id as org_id, e.version,
         to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at,
         e.kind as entry, e.amount_mils, e.balance_after_mils, e.request_id, e.grant_id, e.token_id, e.reason
       from unnest($1::text[], $2::bigint[], $3::bigint[]) p (id, first_version, next_version)
       join ledger_entries e on e.organization_id = p.id collate "C" and e.version >= p.first_version and e.version < p.next_version
       order by e.organization_id, e.version`,
      [
        slice.map(({ account }) => account.id),
        slice.map(({ firstVersion }) => firstVersion),
        slice.map(({ nextVersion }) => nextVersion),
      ],
    ),
  );
  let at = 0;
  return slice.flatMap(({ account, firstVersion, nextVersion }) => {
    const lines: string[] = [];
    for (let next = firstVersion; next < nextVersion; next += 1, at += 1) {
      const entry = entryRow.optional().parse(rows[at]);
      if (entry?.orgId !== account.id || entry.version !== next) refuse(account.id, `lacks version ${next}`);
      if (next === account.firstVersion) account.balanceBeforeMils = entry.balanceAfterMils - entry.amountMils;
      account.amountMils += entry.amountMils;
      account.balanceAfterMils = entry.balanceAfterMils;
      lines.push(JSON.stringify({ kind: "ledger_entry", ...entry }));
    }
    if (nextVersion === account.nextVersion) lines.push(totalLine(account));
    return lines;
  });
}

function totalLine({
  id,
  nextVersion,
  balanceBeforeMils,
  amountMils,
  balanceAfterMils,
  firstVersion,
}: Account): string {
  if (balanceBeforeMils + amountMils !== balanceAfterMils) refuse(id, "does not add up");
  const [lastVersion, entries] = [nextVersion - 1, nextVersion - firstVersion];
  const balances = { balanceBeforeMils, amountMils, balanceAfterMils };
  return JSON.stringify({ kind: "total", orgId: id, entries, firstVersion, lastVersion, ...balances });
}

function refuse(orgId: string, what: string): never {
  throw new CommandRefused(`The ledger of ${orgId} ${what}. Run ledger verify --full.`);
}

import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";

/** The kinds of entries. */
export const entryKinds = ["grant", "charge", "reversal", "correction"] as const;
export type EntryKind = (typeof entryKinds)[number];

const entryRow = rowOf({
  version: z.number(),
  at: z.date(),
  kind: z.string(),
  amountMils: z.number(),
  balanceAfterMils: z.number(),
  requestId: z.string().nullable(),
  grantId: z.string().nullable(),
  tokenId: z.string().nullable(),
  reason: z.string().nullable(),
});
const columns =
  "version, created_at as at, kind, amount_mils, balance_after_mils, request_id, grant_id, token_id, reason";

/** Reads the entries of a search: its charge, and a reversal. A search that was not charged has none. */
export async function readSearchLedger(database: Database, requestId: string) {
  const entriesOf = (kinds: string) =>
    `select ${columns}
     from ledger_entries where request_id = $1 and kind ${kinds}`;
  // Each kind has an index of its own.
  const { rows } = await database.query(
    `${entriesOf("= 'charge'")} union all ${entriesOf("= 'reversal'")} order by version`,
    [requestId],
  );
  return rows
    .map((row) => entryRow.parse(row))
    .map(({ requestId: _ofAll, tokenId: _too, grantId: _none, ...entry }) => entry);
}

/** Reads the newest entries of an organization that a filter selects, at most `limit`, in their order. */
export async function readNewestEntries(
  database: Querying,
  organizationId: string,
  { since, kind, limit }: { since?: Date | undefined; kind?: EntryKind | undefined; limit: number },
) {
  const { rows } = await database.query(
    `select ${columns}
     from ledger_entries where organization_id = $1 and ($2::text is null or kind = $2)
       and ($3::timestamptz is null or version >= (select first_version_since($1, $3)))
     order by version desc limit $4`,
    [organizationId, kind, since, limit],
  );
  return rows.toReversed().map((row) => entryRow.parse(row));
}

/** The mils of a grant or a correction; undefined if there is none with this id. */
export async function readGrantMils(
  database: Querying,
  kind: "grant" | "correction",
  grantId: string,
): Promise<number | undefined> {
  const statement = "select amount_mils from ledger_entries where grant_id = $1 and kind = $2";
  const { rows } = await database.query(statement, [grantId, kind]);
  return rows[0] && valueOf(z.number(), rows[0]);
}

const topupRow = rowOf({ version: z.number(), at: z.date(), grantId: z.string(), mils: z.number() });
/** Credit that was paid for through Stripe. The grant has the id of the Checkout Session or, if automatic, of the PaymentIntent. */
export type ListedTopup = z.infer<typeof topupRow>;

/** Lists top-ups of an organization, newest first, from the first one before a version. */
export async function listTopups(
  database: Database,
  organizationId: string,
  { before = Number.MAX_SAFE_INTEGER, limit }: { before?: number | undefined; limit: number },
): Promise<ListedTopup[]> {
  const { rows } = await database.query(
    `select version, created_at as at, grant_id, amount_mils as mils from ledger_entries
     where organization_id = $1 and kind = 'grant' and kind <> 'charge' and reason = 'top-up' and version < $2
     order by version desc limit $3`,
    [organizationId, before, limit],
  );
  return rows.map((row) => topupRow.parse(row));
}

/** Whether a payment was credited to this organization. */
export async function isTopupOf(database: Database, organizationId: string, grantId: string): Promise<boolean> {
  const { rowCount } = await database.query(
    `select 1 from ledger_entries
     where grant_id = $1 and kind = 'grant' and organization_id = $2 and reason = 'top-up'`,
    [grantId, organizationId],
  );
  return rowCount === 1;
}

/** Whether the grant of a top-up is that of an automatic one. */
export const isAutomatic = (grantId: string) => grantId.startsWith("pi_");

import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import type { Querying } from "../../shared/database/transaction.ts";

/** The kinds of entries. */
export const entryKinds = ["grant", "charge", "reversal", "correction"] as const;
export type EntryKind = (typeof entryKinds)[number];

const entryRow = z.object({
  version: z.number(),
  kind: z.string(),
  amount_mils: z.number(),
  balance_after_mils: z.number(),
  request_id: z.string().nullable(),
  grant_id: z.string().nullable(),
  reason: z.string().nullable(),
  token_id: z.string().nullable(),
  created_at: z.date(),
});

/** Reads the ledger entries of an organization as they are, in their order, from the first one after a version. */
export async function readLedgerPage(
  database: Database,
  organizationId: string,
  { after, limit }: { after: number; limit: number },
) {
  const { rows } = await database.query(
    `select version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason, token_id, created_at
     from ledger_entries where organization_id = $1 and version > $2 order by version limit $3`,
    [organizationId, after, limit],
  );
  return rows.map(readEntry);
}

/** Reads the entries of a search: its charge, and a reversal. A search that was not charged has none. */
export async function readSearchLedger(database: Database, requestId: string) {
  const entriesOf = (kinds: string) =>
    `select version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason, token_id, created_at
     from ledger_entries where request_id = $1 and kind ${kinds}`;
  // Each kind has an index of its own.
  const { rows } = await database.query(
    `${entriesOf("= 'charge'")} union all ${entriesOf("= 'reversal'")} order by version`,
    [requestId],
  );
  return rows.map(readEntry).map(({ requestId: _ofAll, tokenId: _too, grantId: _none, ...entry }) => entry);
}

/** Reads the newest entries of an organization that a filter selects, at most `limit`, in their order. */
export async function readNewestEntries(
  database: Querying,
  organizationId: string,
  { since, kind, limit }: { since?: Date | undefined; kind?: EntryKind | undefined; limit: number },
) {
  const { rows } = await database.query(
    `select version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason, token_id, created_at
     from ledger_entries where organization_id = $1 and ($2::text is null or kind = $2)
       and ($3::timestamptz is null or version >= (select first_version_since($1, $3)))
     order by version desc limit $4`,
    [organizationId, kind, since, limit],
  );
  return rows.toReversed().map(readEntry);
}

// Each kind has an index of its own.
const amountStatements = {
  grant: "select amount_mils from ledger_entries where grant_id = $1 and kind = 'grant'",
  correction: "select amount_mils from ledger_entries where grant_id = $1 and kind = 'correction'",
};
const amountRow = z.object({ amount_mils: z.number() });

/** The mils of a grant or a correction; undefined if there is none with this id. */
export async function readGrantMils(
  database: Querying,
  kind: "grant" | "correction",
  grantId: string,
): Promise<number | undefined> {
  const { rows } = await database.query(amountStatements[kind], [grantId]);
  return rows[0] && amountRow.parse(rows[0]).amount_mils;
}

function readEntry(read: unknown) {
  const { version, kind, reason, ...row } = entryRow.parse(read);
  return {
    version,
    at: row.created_at,
    kind,
    amountMils: row.amount_mils,
    balanceAfterMils: row.balance_after_mils,
    requestId: row.request_id,
    grantId: row.grant_id,
    tokenId: row.token_id,
    reason,
  };
}

const refundRow = z.object({
  number: z.number(),
  version: z.number(),
  request_id: z.string(),
  reason: z.string(),
  token_id: z.string().nullable(),
  created_at: z.date(),
});

/** Reads the refunds of an organization, which are kept for 30 days, in their order, from the first one after a number. */
export async function readRefundsPage(
  database: Database,
  organizationId: string,
  { after, limit }: { after: number; limit: number },
) {
  const { rows } = await database.query(
    `select number, version, request_id, reason, token_id, created_at from refunds
     where organization_id = $1 and number > $2 order by number limit $3`,
    [organizationId, after, limit],
  );
  return rows
    .map((row) => refundRow.parse(row))
    .map(({ number, version, request_id: requestId, reason, token_id: tokenId, created_at: at }) => {
      return { number, version, at, requestId, reason, tokenId };
    });
}

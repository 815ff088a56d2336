import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { type AccountToken, isValid, readTokens } from "./tokens.ts";

/** The tokens of an organization, as its account shows them. */

/** Tokens that are shown: valid ones first. An organization may have more from its operator. */
const tokensMax = 200;
/** Ledger entries that are read for the use of each token. */
const entriesMax = 20_000;

/** Reads the tokens of an organization, valid ones first, the newest first. */
export function readAccountTokens(database: Database, organizationId: string): Promise<AccountToken[]> {
  const condition = "organization_id = $1 order by is_valid desc, id desc limit $2";
  return readTokens(database, condition, [organizationId, tokensMax]);
}

/** Reads one token. @returns undefined if the organization has no such token. */
export async function readAccountToken(
  database: Querying,
  organizationId: string,
  tokenId: string,
): Promise<AccountToken | undefined> {
  const [token] = await readTokens(database, "organization_id = $1 and id = $2", [organizationId, tokenId]);
  return token;
}

/** Reads the tokens to choose one from: as above, and the chosen one, which may be an old one. */
export async function readTokenChoice(
  database: Database,
  organizationId: string,
  chosen: string | undefined,
): Promise<AccountToken[]> {
  const tokens = await readAccountTokens(database, organizationId);
  if (chosen === undefined || tokens.some(({ tokenId }) => tokenId === chosen)) return tokens;
  const token = await readAccountToken(database, organizationId, chosen);
  return token ? [...tokens, token] : tokens;
}

/** How many valid tokens an organization has. */
export async function countValidTokens(transaction: Querying, organizationId: string): Promise<number> {
  const { rows } = await transaction.query(
    `select count(*)::integer as tokens from tokens where organization_id = $1 and ${isValid}`,
    [organizationId],
  );
  return valueOf(z.number(), rows[0]);
}

/** What the searches with each token cost, without what was credited back later. */
export interface TokenUse {
  /** The beginning: 30 days ago, or later if the organization has too many entries since. */
  since: Date;
  isWhole: boolean;
  /** By the token's id. */
  byToken: Map<string, { charges: number; netMils: number }>;
}

const useRow = rowOf({
  since: z.date(),
  isWhole: z.boolean(),
  tokenId: z.string().nullable(),
  charges: z.number().nullable(),
  netMils: z.number().nullable(),
});

/**
 * Reads what the searches with each token cost in the last 30 days, from 20,000 ledger entries at most. The limit tells that to
 * Postgres, which would read the whole ledger for an organization that has much of it.
 */
export async function readTokenUse(database: Database, organizationId: string): Promise<TokenUse> {
  const { rows } = await database.query(
    `with span as (
       select greatest(f.first, o.version - $2 + 1) as first, f.first > o.version - $2 as is_whole
       from organizations o cross join lateral (select first_version_since(o.id, now() - interval '720 hours') as first) f
       where o.id = $1
     ), used as (
       select l.token_id, count(*) filter (where l.kind = 'charge')::integer as charges, -sum(l.amount_mils)::bigint as net_mils
       from span cross join lateral (
         select token_id, kind, amount_mils from ledger_entries
         where organization_id = $1 and version >= span.first order by version desc limit $2) l
       where l.kind in ('charge', 'reversal')
       group by l.token_id
     )
     select s.is_whole, u.*,
       case when s.is_whole then now() - interval '720 hours'
         else (select created_at from ledger_entries where organization_id = $1 and version = s.first) end as since
     from span s left join used u on true`,
    [organizationId, entriesMax],
  );
  const read = rows.map((row) => useRow.parse(row));
  return {
    since: read[0]?.since ?? new Date(),
    isWhole: read[0]?.isWhole ?? true,
    byToken: new Map(
      read.flatMap(({ tokenId, charges, netMils }) =>
        tokenId === null ? [] : [[tokenId, { charges: charges ?? 0, netMils: netMils ?? 0 }]],
      ),
    ),
  };
}

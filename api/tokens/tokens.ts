import { hash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import { z } from "zod";
import { type Change, recordAudit } from "../../shared/audit/audit.ts";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { newId } from "../../shared/ids.ts";
import type { LimitChange } from "../organizations/limits.ts";
import { headerScopes, type Scope } from "../../shared/organizations/organizations.ts";

/**
 * A token is `smk_`, 32 random characters of [a-z0-9], and a checksum of 7: the CRC-32 of everything before it, in base 36,
 * padded with 0. With the checksum, a typo is refused without a lookup, and a secret scanner recognises a token.
 */
const prefix = "smk_";
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
const randomLength = 32;
const checksumLength = 7;
const tokenForm = /^smk_[a-z0-9]{39}$/;

const checksum = (text: string) => crc32(text).toString(36).padStart(checksumLength, "0");

export function newToken(): string {
  const random = Array.from({ length: randomLength }, () => alphabet[randomInt(alphabet.length)]).join("");
  return prefix + random + checksum(prefix + random);
}

/** Whether a text has the form and the checksum of a token. This needs no lookup. */
export function isTokenShaped(text: string): boolean {
  return tokenForm.test(text) && text.endsWith(checksum(text.slice(0, -checksumLength)));
}

/** The SHA-256 of a token. Postgres stores only this: 32 random characters need no slow hash. */
export const hashToken = (token: string): Buffer => hash("sha256", token, "buffer");

/**
 * The terms of a new token, with its limits. Without them it has no name and no limits, may do everything but stand in addresses, and
 * never expires. A token with the scope `door` needs a daily limit.
 */
export interface TokenTerms extends LimitChange {
  /** The id that it gets; without it, a new one. */
  tokenId?: string | undefined;
  name?: string | undefined;
  scopes?: readonly Scope[] | undefined;
  expiresInDays?: number | undefined;
  /** Instead of a number of days. */
  expiresAt?: Date | null | undefined;
  /** The token that makes it. The new token expires with it at the latest. */
  parentId?: string | undefined;
}

/** A new token, and its terms. */
export interface IssuedToken {
  tokenId: string;
  token: string;
  name: string | null;
  scopes: readonly Scope[];
  expiresAt: Date | null;
}

/**
 * Issues a token. This is the only time that it can be read.
 * @returns undefined if the organization does not exist.
 */
export async function issueToken(
  database: Querying,
  organizationId: string,
  terms: TokenTerms = {},
): Promise<IssuedToken | undefined> {
  const { tokenId = newId("tok"), name, scopes = headerScopes, dayMils, monthMils } = terms;
  const token = newToken();
  // From its first limit on, what a token spends is counted.
  const { rows } = await database.query(
    `insert into tokens (id, organization_id, hash, last4, expires_at, name, scopes, parent_id,
       day_limit_mils, month_limit_mils, spending_day, spent_day_mils, spent_month_mils)
     select $1, o.id, $3, $4, least(coalesce($11, now() + make_interval(hours => 24 * $5)), p.expires_at), $6, $7, $8,
       l.day, l.month, case when l.is_any then utc_today() end, case when l.is_any then 0 end, case when l.is_any then 0 end
     from organizations o left join tokens p on p.id = $8
     cross join (select $9::bigint, $10::bigint, num_nonnulls($9::bigint, $10::bigint) > 0) l (day, month, is_any)
     where o.id = $2
     returning expires_at`,
    [
      tokenId,
      organizationId,
      hashToken(token),
      token.slice(-4),
      terms.expiresInDays,
      name,
      scopes,
      terms.parentId,
      dayMils,
      monthMils,
      terms.expiresAt,
    ],
  );
  if (!rows[0]) return undefined;
  return { tokenId, token, name: name ?? null, scopes, expiresAt: valueOf(z.date().nullable(), rows[0]) };
}

/** The condition for a row that is neither revoked nor expired. */
export const isValid = "revoked_at is null and (expires_at is null or expires_at > now())";

const tokenFields = {
  tokenId: z.string(),
  name: z.string().nullable(),
  scopes: z.array(z.string()),
  /** The token that made it; null for one of the operator. */
  parentId: z.string().nullable(),
  last4: z.string(),
  createdAt: z.date(),
  expiresAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
  lastUsedAt: z.date().nullable(),
  dayLimitMils: z.number().nullable(),
  monthLimitMils: z.number().nullable(),
  /** Neither revoked nor expired. */
  isValid: z.boolean(),
};
const tokenRow = rowOf(tokenFields);
/** A token without its secret. */
export type AccountToken = z.infer<typeof tokenRow>;

const columns = `t.id as token_id, t.name, t.scopes, t.parent_id, t.last4, t.created_at, t.expires_at, t.revoked_at, t.last_used_at,
  t.day_limit_mils, t.month_limit_mils, ${isValid} as is_valid`;

/** Reads tokens. @param condition which ones, and in which order. */
export async function readTokens(database: Querying, condition: string, values: unknown[]): Promise<AccountToken[]> {
  const { rows } = await database.query(`select ${columns} from tokens t where ${condition}`, values);
  return rows.map((row) => tokenRow.parse(row));
}

export const listTokens = (database: Database, organizationId: string) =>
  readTokens(database, "organization_id = $1 order by id", [organizationId]);

const foundRow = rowOf({ orgId: z.string(), organization: z.string(), ...tokenFields });

/** Finds a token that was issued, also if it has expired or was revoked. @returns undefined if there is none. */
export async function findToken(database: Querying, token: string) {
  const { rows } = await database.query(
    `select ${columns}, o.id as org_id, o.name as organization
     from tokens t join organizations o on o.id = t.organization_id where t.hash = $1`,
    [hashToken(token)],
  );
  return rows[0] && foundRow.parse(rows[0]);
}

const revokedRow = rowOf({ organizationId: z.string(), wasRevoked: z.boolean() });

/**
 * Revokes a token permanently. A repeat keeps the first time.
 * @returns its organization, and whether it was revoked before; undefined if the token does not exist.
 */
export async function revokeToken(
  database: Querying,
  tokenId: string,
): Promise<{ organizationId: string; wasRevoked: boolean } | undefined> {
  const { rows } = await database.query(
    `with old as (select id, revoked_at is not null as was_revoked from tokens where id = $1 for no key update)
     update tokens t set revoked_at = coalesce(t.revoked_at, now())
     from old where t.id = old.id returning t.organization_id, old.was_revoked`,
    [tokenId],
  );
  return rows[0] && revokedRow.parse(rows[0]);
}

const endedRow = rowOf({ organizationId: z.string(), endedAt: z.date() });

/** Ends a token that has a successor, by the clock of Postgres, as it expires. @returns when it ends: then, or with its own expiry. */
export async function endToken(
  transaction: Querying,
  change: Change,
  rotated: { tokenId: string; expiresAt: Date | null; successorId: string; inSeconds: number },
): Promise<Date> {
  const { tokenId, expiresAt, successorId, inSeconds } = rotated;
  const text = "select * from end_token($1, now() + make_interval(secs => $2))";
  const { rows } = await transaction.query(text, [tokenId, inSeconds]);
  const { organizationId, endedAt } = endedRow.parse(rows[0]);
  const values = { before: { expiresAt }, after: { expiresAt: endedAt, successorId } };
  await recordAudit(transaction, { ...change, action: "token.rotated", organizationId, subject: tokenId, ...values });
  return endedAt;
}

import { hash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { newId } from "../../shared/ids.ts";
import { type Scope, scopes as allScopes } from "../../shared/organizations/organizations.ts";

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
export function hashToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** The terms of a new token. Without them it has no name, may do everything and never expires. */
export interface TokenTerms {
  /** The id that it gets; without it, a new one. */
  tokenId?: string | undefined;
  name?: string | undefined;
  scopes?: readonly Scope[] | undefined;
  expiresInDays?: number | undefined;
  /** The token that makes it. Without a time of its own, the new token expires with it. */
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

const issuedRow = z.object({ id: z.string(), expires_at: z.date().nullable() });

/**
 * Issues a token. This is the only time that it can be read.
 * @returns undefined if the organization does not exist.
 */
export async function issueToken(
  database: Querying,
  organizationId: string,
  { tokenId = newId("tok"), name, scopes = allScopes, expiresInDays, parentId }: TokenTerms = {},
): Promise<IssuedToken | undefined> {
  const token = newToken();
  const { rows } = await database.query(
    `insert into tokens (id, organization_id, hash, last4, expires_at, name, scopes, parent_id)
     select $1, o.id, $3, $4, coalesce(now() + make_interval(hours => 24 * $5), p.expires_at), $6, $7, $8
     from organizations o left join tokens p on p.id = $8 where o.id = $2
     returning id, expires_at`,
    [tokenId, organizationId, hashToken(token), token.slice(-4), expiresInDays, name, scopes, parentId],
  );
  if (!rows[0]) return undefined;
  const row = issuedRow.parse(rows[0]);
  return { tokenId: row.id, token, name: name ?? null, scopes, expiresAt: row.expires_at };
}

/** A row of a token, without its secret. */
export const tokenRow = z.object({
  id: z.string(),
  name: z.string().nullable(),
  scopes: z.array(z.string()),
  parent_id: z.string().nullable(),
  last4: z.string(),
  created_at: z.date(),
  expires_at: z.date().nullable(),
  revoked_at: z.date().nullable(),
  last_used_at: z.date().nullable(),
});

export async function listTokens(database: Database, organizationId: string) {
  const { rows } = await database.query(
    `select id, name, scopes, parent_id, last4, created_at, expires_at, revoked_at, last_used_at from tokens where organization_id = $1
     order by id`,
    [organizationId],
  );
  return rows.map(readToken);
}

/** What a row says about a token. @param found a row with the columns of `tokenRow`. */
export function readToken(found: unknown) {
  const row = tokenRow.parse(found);
  return {
    tokenId: row.id,
    name: row.name,
    scopes: row.scopes,
    parentId: row.parent_id,
    last4: row.last4,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}

const foundRow = z.object({ organization_id: z.string(), organization_name: z.string() });

/** Finds a token that was issued, also if it has expired or was revoked. @returns undefined if there is none. */
export async function findToken(database: Querying, token: string) {
  const { rows } = await database.query(
    `select t.id, t.name, t.scopes, t.parent_id, t.last4, t.created_at, t.expires_at, t.revoked_at, t.last_used_at,
       o.id as organization_id, o.name as organization_name
     from tokens t join organizations o on o.id = t.organization_id where t.hash = $1`,
    [hashToken(token)],
  );
  if (!rows[0]) return undefined;
  const { organization_id: orgId, organization_name: organization } = foundRow.parse(rows[0]);
  return { orgId, organization, ...readToken(rows[0]) };
}

const revokedRow = z.object({ organization_id: z.string(), was_revoked: z.boolean() });

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
  if (!rows[0]) return undefined;
  const { organization_id: organizationId, was_revoked: wasRevoked } = revokedRow.parse(rows[0]);
  return { organizationId, wasRevoked };
}

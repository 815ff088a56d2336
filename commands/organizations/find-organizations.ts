import { z } from "zod";
import type { Querying } from "../../shared/database/transaction.ts";

/** An organization as a line of a list. */
export interface ListedOrganization {
  orgId: string;
  name: string;
  plan: string;
  balanceMils: number;
  state: "active" | "suspended" | "erased";
  createdAt: Date;
}

const listedRow = z.object({
  id: z.string(),
  name: z.string(),
  plan_code: z.string(),
  balance_mils: z.number(),
  state: z.enum(["active", "suspended", "erased"]),
  created_at: z.date(),
});

const listed = `select id, name, plan_code, balance_mils, created_at, case when erased_at is not null then 'erased'
    when suspended_at is not null then 'suspended' else 'active' end as state
  from organizations`;

/** Lists organizations, newest first, at most `limit`, of those that are older than the id `before`. */
export async function listOrganizations(
  database: Querying,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<ListedOrganization[]> {
  // Ids begin with the time at which they were made.
  const { rows } = await database.query(`${listed} where $1::text is null or id < $1 order by id desc limit $2`, [
    before,
    limit,
  ]);
  return rows.map(readListed);
}

/** Finds organizations by a part of their name, in upper or lower case, or by their whole id; newest first, at most `limit`. */
export async function findOrganizations(
  database: Querying,
  { text, limit }: { text: string; limit: number },
): Promise<ListedOrganization[]> {
  const { rows } = await database.query(
    `${listed} where id = $1 or erased_at is null and position(lower($1) in lower(name)) > 0 order by id desc limit $2`,
    [text, limit],
  );
  return rows.map(readListed);
}

function readListed(row: unknown): ListedOrganization {
  const { id, plan_code: plan, balance_mils: balanceMils, created_at: createdAt, name, state } = listedRow.parse(row);
  return { orgId: id, name, plan, balanceMils, state, createdAt };
}

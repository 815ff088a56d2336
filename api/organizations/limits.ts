import { z } from "zod";
import { rowOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";

const limitsRow = rowOf({
  organizationId: z.string(),
  dayLimitMils: z.number().nullable(),
  monthLimitMils: z.number().nullable(),
  /** Null while there never was a limit: then it is not counted. */
  spentTodayMils: z.number().nullable(),
  spentThisMonthMils: z.number().nullable(),
});
/** The limits of an organization or a token in mils, with what was spent on this UTC day and in this month; null: no limit. */
export type OwnLimits = z.infer<typeof limitsRow>;

/** New limits in mils: null removes one, and an absent one stays as it is. */
export interface LimitChange {
  dayMils?: number | null | undefined;
  monthMils?: number | null | undefined;
}

type Owner = "organization" | "token";

const spent = "s.spent_day_mils as spent_today_mils, s.spent_month_mils as spent_this_month_mils";
const reading: Record<Owner, string> = {
  organization: `select o.id as organization_id, o.day_limit_mils, o.month_limit_mils, ${spent}
    from organizations o join organization_spending s on s.organization_id = o.id where o.id = $1`,
  token: `select t.organization_id, t.day_limit_mils, t.month_limit_mils, ${spent}
    from tokens t left join token_spending s on s.token_id = t.id where t.id = $1`,
};
const changing: Record<Owner, string> = {
  organization: "select limit_organization($1, $2, $3)",
  token: "select limit_token($1, $2, $3)",
};

/** Reads the limits of an organization or a token by its id. @returns undefined if it does not exist. */
export async function readOwnLimits(database: Querying, owner: Owner, id: string): Promise<OwnLimits | undefined> {
  const { rows } = await database.query(reading[owner], [id]);
  return rows[0] && limitsRow.parse(rows[0]);
}

/**
 * Changes limits, in a transaction. What was spent before on this UTC day and in this month counts.
 * @returns the limits before and after; undefined if the organization or the token does not exist.
 */
export async function changeLimits(
  database: Querying,
  owner: Owner,
  id: string,
  { dayMils, monthMils }: LimitChange,
): Promise<{ before: OwnLimits; after: OwnLimits } | undefined> {
  // Serializes concurrent changes, so that one of the day and one of the month do not overwrite each other.
  await database.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [id]);
  const before = await readOwnLimits(database, owner, id);
  if (!before) return undefined;
  const { dayLimitMils, monthLimitMils } = before;
  const wanted = [dayMils === undefined ? dayLimitMils : dayMils, monthMils === undefined ? monthLimitMils : monthMils];
  await database.query(changing[owner], [id, ...wanted]);
  const after = await readOwnLimits(database, owner, id);
  return after && { before, after };
}

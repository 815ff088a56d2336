import { z } from "zod";
import { valueOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { type AccountToken, isValid, readTokens } from "./tokens.ts";
import type { LimitChange } from "../organizations/limits.ts";
import { lockAccount } from "../../shared/organizations/organizations.ts";

/**
 * A token that was made on the account pages has a parent: the token of the session that made it. When it is made, it expires no
 * later than its parent. No limit of it is ever above that of its parent. Tokens of operators have no parent.
 */

/** Locks the account of a token as {@link lockAccount}. @returns its organization; undefined if there is no such token. */
export async function lockAccountOf(transaction: Querying, tokenId: string): Promise<string | undefined> {
  const { rows } = await transaction.query("select organization_id from tokens where id = $1", [tokenId]);
  if (!rows[0]) return undefined;
  const organizationId = valueOf(z.string(), rows[0]);
  await lockAccount(transaction, organizationId);
  return organizationId;
}

/** Reads a token if it is valid, or in any state. */
export async function readFamilyMember(
  database: Querying,
  tokenId: string,
  state: "valid" | "any" = "valid",
): Promise<AccountToken | undefined> {
  const [token] = await readTokens(database, "id = $1", [tokenId]);
  return state === "any" || token?.isValid === true ? token : undefined;
}

/** The valid tokens that a token made, that these made, and so on; the oldest first. */
export function readDescendants(database: Querying, tokenId: string): Promise<AccountToken[]> {
  const condition = `id in (
      with recursive own as (
        select id, parent_id from tokens where organization_id = (select organization_id from tokens where id = $1)
      ), family as (
        select id from own where parent_id = $1
        union select own.id from own join family on own.parent_id = family.id
      )
      select id from family
    ) and ${isValid} order by id`;
  return readTokens(database, condition, [tokenId]);
}

type Limits = Pick<AccountToken, "dayLimitMils" | "monthLimitMils">;

/** A limit that would be above that of another token. */
export interface Excess {
  field: "day" | "month";
  boundMils: number;
  /** Whose limit is the bound. */
  tokenId: string;
}

/** Limits were not set, because they would be above those of the token that made this one, or of the one that changes them. */
export class LimitsTooHigh extends Error {
  readonly excesses: readonly Excess[];

  constructor(excesses: readonly Excess[]) {
    super("a limit of a token may not be above that of its parent");
    this.excesses = excesses;
  }
}

/** The token of a door always has a daily limit. */
export class DayLimitRequired extends Error {
  constructor() {
    super("a token with the scope door needs a daily limit");
  }
}

/** The limits that a change raises above those of another token. To lower them is always allowed. */
export function excessesOf(current: Limits, { dayMils, monthMils }: LimitChange, bound: AccountToken): Excess[] {
  const { tokenId, dayLimitMils, monthLimitMils } = bound;
  return [
    ...excessOf("day", tokenId, { wanted: dayMils, current: current.dayLimitMils, bound: dayLimitMils }),
    ...excessOf("month", tokenId, { wanted: monthMils, current: current.monthLimitMils, bound: monthLimitMils }),
  ];
}

function excessOf(
  field: Excess["field"],
  tokenId: string,
  { wanted, current, bound }: { wanted: number | null | undefined; current: number | null; bound: number | null },
): Excess[] {
  if (wanted === undefined || bound === null) return [];
  const [mils, currentMils] = [wanted ?? Number.POSITIVE_INFINITY, current ?? Number.POSITIVE_INFINITY];
  return mils > bound && mils > currentMils ? [{ field, boundMils: bound, tokenId }] : [];
}

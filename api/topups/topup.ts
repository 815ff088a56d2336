import { z } from "zod";
import type { Querying } from "../../shared/database/transaction.ts";
import type { VersionedBalance } from "../../shared/credits/versioned-balance.ts";

const topupRow = z.object({
  fresh: z.boolean(),
  balance_mils: z.number(),
  version: z.number(),
  plan_changed: z.boolean(),
});

/** The outcome of a top-up: `fresh` if this call added the credit, `planChanged` if it also changed `free` to `payg`. */
export interface Topup {
  fresh: boolean;
  planChanged: boolean;
  balance: VersionedBalance;
}

/**
 * Adds credit that was paid for. A top-up counts once, however often it is sent with the same id. An organization's first
 * one changes its plan from `free` to `payg` in the same transaction.
 * @returns undefined if the organization does not exist.
 */
export async function topUp(
  database: Querying,
  paid: { organizationId: string; grantId: string; mils: number },
): Promise<Topup | undefined> {
  const { rows } = await database.query("select * from topup($1, $2, $3)", [
    paid.organizationId,
    paid.grantId,
    paid.mils,
  ]);
  if (!rows[0]) return undefined;
  const row = topupRow.parse(rows[0]);
  const balance = { balanceMils: row.balance_mils, version: row.version };
  return { fresh: row.fresh, planChanged: row.plan_changed, balance };
}

import { z } from "zod";
import type { Database } from "../database/pool.ts";
import type { VersionedBalance } from "./versioned-balance.ts";

const topupRow = z.object({
  fresh: z.boolean(),
  balance_mils: z.number(),
  version: z.number(),
  plan_changed: z.boolean(),
});

/** What a top-up has led to: `fresh` if this call added the credit, `planChanged` if it also turned `free` into `payg`. */
export interface Topup {
  fresh: boolean;
  planChanged: boolean;
  balance: VersionedBalance;
}

/**
 * Adds credit that was paid for. It counts once however often it is sent with the same id; an organization's first turns
 * the plan `free` into `payg` in the same transaction.
 * @returns undefined where the organization does not exist.
 */
export async function topUp(
  database: Database,
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

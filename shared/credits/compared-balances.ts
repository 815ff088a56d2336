import { z } from "zod";
import type { Database } from "../database/pool.ts";
import type { VersionedBalance } from "./versioned-balance.ts";

const comparedRow = z.object({
  id: z.string(),
  balance_mils: z.number(),
  version: z.number(),
  ledger_mils: z.number(),
});

/** An organization's balance, and what its newest ledger entry says that the balance is. They differ only by a bug. */
export interface ComparedBalance {
  organizationId: string;
  balance: VersionedBalance;
  ledgerMils: number;
}

/** Lists organizations with their balances in the order of their ids, from the first id after `after`. */
export async function listBalances(database: Database, after: string, limit: number): Promise<ComparedBalance[]> {
  const { rows } = await database.query(
    `select o.id, o.balance_mils, o.version, coalesce(l.balance_after_mils, 0) as ledger_mils
     from organizations o left join ledger_entries l on l.organization_id = o.id and l.version = o.version
     where o.id > $1 order by o.id limit $2`,
    [after, limit],
  );
  return rows
    .map((row) => comparedRow.parse(row))
    .map((row) => ({
      organizationId: row.id,
      balance: { balanceMils: row.balance_mils, version: row.version },
      ledgerMils: row.ledger_mils,
    }));
}

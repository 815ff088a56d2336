import type { Organization, Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

/** Inserts charges of 0 mils, with ids that begin like this, as the ledger's functions would have written them now. */
export async function lengthenLedger(
  service: Service,
  { organizationId, tokenId }: Organization,
  { entries, idPrefix = "" }: { entries: number; idPrefix?: string },
): Promise<void> {
  await asOwner(service.databaseUrl, async (owner) => {
    await owner.query(
      `insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
       select id, version + n, 'charge', 0, balance_mils, $4 || id || n, $2 from organizations, generate_series(1, $3) n where id = $1`,
      [organizationId, tokenId, entries, idPrefix],
    );
    await owner.query("update organizations set version = version + $2 where id = $1", [organizationId, entries]);
  });
}

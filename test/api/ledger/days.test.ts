import { expect, onTestFinished, test } from "vitest";
import { readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { countRefunds } from "../../harness/fixtures/backdate-ledger.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

const entries = 10_000;
const days = 90;

test("90 days are read within the time limit of a query, also where Postgres' statistics are older than the ledger's entries", async () => {
  const { database, url, close } = await openFreshDatabase();
  onTestFinished(close);
  const made = ["busy", "earlier"].map((name) => createOrganization(database, { name, planCode: "payg" }));
  const [busy = "", earlier = ""] = (await Promise.all(made)).map((one) => one?.organizationId);
  const insertSearches = async (organizationId: string, count: number) =>
    asOwner(url, async (client) => {
      await client.query(
        `with charges as (
           insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id, created_at)
           select $1, n, 'charge', 0, 0, $1 || n, 't', '2026-03-01T00:00Z'::timestamptz + (n - 1) * interval '90 days' / $2::int
           from generate_series(1, $2::int) n
           returning *)
         insert into refunds (organization_id, version, request_id, reason, created_at)
         select organization_id, version, request_id || 'r', 'provider_unavailable', created_at from charges order by version`,
        [organizationId, count],
      );
      await client.query("update organizations set version = $2 where id = $1", [organizationId, count]);
      await countRefunds(client, organizationId);
    });
  await insertSearches(earlier, 100);
  await asOwner(url, (client) => client.query("analyze"));
  await insertSearches(busy, entries);

  const read = await readLedgerDays(database, busy, { from: "2026-03-01", days });
  expect(read).toHaveLength(days);
  expect(read.reduce((total, { charges }) => total + charges, 0)).toBe(entries);
  expect(read.reduce((total, { refunds }) => total + refunds, 0)).toBe(entries);
});

import { expect, onTestFinished, test } from "vitest";
import { readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import { clearOldRefunds, decideSettlements, type SettlementRequest } from "../../../shared/credits/ledger.ts";
import { verifyLedger } from "../../../commands/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

test("10,000 failed searches leave a row for each hour, token and reason, and their figures, once their refunds are old", async () => {
  const { database, url } = await openFreshDatabase(onTestFinished);
  const organizationId = await createPayer(database, 100);
  const count = async (table: string): Promise<number> =>
    (await database.query(`select count(*) as rows from ${table}`)).rows[0].rows;
  const [searches, perBatch] = [10_000, 500];
  const tokens = [newId("tok"), newId("tok"), undefined];
  for (let first = 0; first < searches; first += perBatch)
    await decideSettlements(
      database,
      Array.from({ length: perBatch }, (_, nth): SettlementRequest => {
        const reason = nth % 2 === 0 ? "provider_unavailable" : "caller_disconnected";
        return { requestId: newId("req"), organizationId, tokenId: tokens[nth % 3], wanted: "refund", reason };
      }),
    );
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
  // All are older than 30 days, but for one.
  await asOwner(url, async (owner) => {
    await owner.query("update refunds set created_at = created_at - interval '31 days'");
    await owner.query("update refund_counts set hour = hour - interval '31 days'");
    await owner.query(
      `insert into refunds (organization_id, request_id, version, reason, created_at)
       values ($1, 'req', 1, 'swept', now() - interval '29 days 23 hours')`,
      [organizationId],
    );
  });

  const pages = [];
  for (let page = 0; page < 4; page += 1) pages.push(await clearOldRefunds(database, 4_000));
  expect(pages).toEqual([4_000, 4_000, 2_000, 0]);
  expect([await count("refunds"), await count("ledger_entries")]).toEqual([1, 1]);
  // In two hours at most.
  expect(await count("refund_counts")).toBeLessThanOrEqual(2 * tokens.length * 2);
  const days = await readLedgerDays(database, organizationId, { days: 33 });
  expect(days.reduce((sum, { refunds }) => sum + refunds, 0)).toBe(searches);
});

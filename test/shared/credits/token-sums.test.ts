import type { Client } from "pg";
import { afterAll, expect, test } from "vitest";
import { reverseCharges } from "../../../shared/credits/deliveries.ts";
import { decideSettlements, readCredit } from "../../../shared/credits/ledger.ts";
import { spentIn } from "../../../shared/credits/limits.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

/** The sums of a long ledger, by which limits are set without reading it. */

const entriesPerSum = 4_096;

const opened = await openFreshDatabase(afterAll);

/** An organization with so many entries of this month: a grant, and charges and reversals with and without its two tokens. */
async function payer(entries: number) {
  const { database, url } = opened;
  const organizationId = await createPayer(database);
  const [first, second] = [await issueToken(database, organizationId), await issueToken(database, organizationId)];
  const tokenIds = [first?.tokenId ?? "", second?.tokenId ?? ""];
  await asOwner(url, async (client) => {
    await client.query(
      `insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason, token_id)
       select $1, n, kind, case kind when 'grant' then 9000000 when 'charge' then -(1 + n % 7) else n % 5 end,
         9000000, case when n > 1 then $1 || n end, case when n = 1 then $1 end, 'x', case when n > 1 then ($3::text[])[n % 3] end
       from generate_series(1, $2::bigint) n
       cross join lateral (select case when n = 1 then 'grant' else (array['charge', 'charge', 'reversal'])[1 + n % 3] end) k (kind)`,
      [organizationId, entries, tokenIds],
    );
    // As by settlements of very different sizes.
    const advance = "update organizations set version = $2, balance_mils = 9000000 where id = $1";
    for (const version of [entriesPerSum - 1, entriesPerSum, 2 * entriesPerSum + 1, entries])
      if (version <= entries) await client.query(advance, [organizationId, version]);
  });
  return { organizationId, tokenId: tokenIds[0] ?? "" };
}

/** How many of these spans of a ledger have other costs by the sums than by their entries. */
async function wrongSpans(client: Client, { organizationId, tokenId }: { organizationId: string; tokenId: string }) {
  const edges = [1, 2, entriesPerSum - 1, entriesPerSum, entriesPerSum + 1, 2 * entriesPerSum, 2 * entriesPerSum + 1];
  const ends = [...edges, 5_000, 10_000, 16_384, 16_385, 19_999, 20_000];
  const { rows } = await client.query(
    `select count(*)::integer as spans, (count(*) filter (where
       token_spent_by_sums($1, $2, f, l) <> token_spent($1, $2, f, l)))::integer as wrong
     from unnest($3::bigint[]) f, unnest($3::bigint[]) l`,
    [organizationId, tokenId, ends],
  );
  return rows;
}

test("by the sums, each span of a ledger costs what its entries cost", async () => {
  const own = await payer(20_000);
  await asOwner(opened.url, async (client) => {
    expect(await wrongSpans(client, own)).toEqual([{ spans: 169, wrong: 0 }]);
  });
});

test("a limit counts charges and reversals that completed a sum, and those behind it", async () => {
  const { organizationId, tokenId } = await payer(entriesPerSum - 100);
  const spent = async () => {
    await changeLimits(opened.database, "token", tokenId, { monthMils: 1_000_000 });
    const credit = await readCredit(opened.database, organizationId, { tokenId });
    return spentIn("month", credit?.token?.spending ?? "");
  };
  const before = await spent();
  const requests = Array.from({ length: 200 }, () => chargeOf(organizationId, { tokenId }));
  await decideSettlements(opened.database, requests);
  expect(await spent()).toBe(before + 200 * 5);
  await reverseCharges(opened.database, requests.slice(0, 150), "undelivered");
  expect(await spent()).toBe(before + 50 * 5);
});

/** Entries of the ledger that Postgres reads for this statement. */
async function entriesRead(statement: string, id: string): Promise<number> {
  return asOwner(opened.url, async (client) => {
    await client.query("begin");
    await client.query(statement, [id]);
    const { rows } = await client.query(
      `select (idx_tup_fetch + seq_tup_read)::integer as entries from pg_stat_xact_user_tables where relname = 'ledger_entries'`,
    );
    await client.query("rollback");
    return rows[0].entries;
  });
}

test("a limit is set by reading few entries, however many there are; none for a new token", async () => {
  const { organizationId, tokenId } = await payer(100_000);
  const binarySearches = 40;
  expect(await entriesRead("select limit_token($1, 5, 5)", tokenId)).toBeLessThan(2 * entriesPerSum + binarySearches);
  expect(await entriesRead("select limit_organization($1, 5, 5)", organizationId)).toBeLessThan(binarySearches + 10);
  await asOwner(opened.url, "update tokens set created_at = now() + interval '2 minutes' where id = $1", [tokenId]);
  expect(await entriesRead("select limit_token($1, 5, 5)", tokenId)).toBeLessThan(binarySearches);
});

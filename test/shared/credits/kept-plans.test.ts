import { expect, onTestFinished, test } from "vitest";
import { decideSettlements } from "../../../shared/credits/ledger.ts";
import { compressAnswer } from "../../../shared/compress-answer.ts";
import { readPaidKeys, readStoredAnswers } from "../../../shared/credits/stored-answers.ts";
import { type Database } from "../../../shared/database/pool.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

test("a connection that planned its queries on empty tables does not read all keys and answers later", async () => {
  const { database: one, url } = await openFreshDatabase(onTestFinished, { sizeMax: 1 });
  const organizationId = await createPayer(one, 100);
  const body = await compressAnswer(Buffer.from("an answer"));
  const keys = 5_000;
  const useKey = async (hash: string) => {
    const answered = { key: { hash, fingerprint: "q" }, answer: body };
    // Two at once: a search that ends alone has a function of its own.
    await decideSettlements(one, [chargeOf(organizationId, answered), chargeOf("org_unknown", answered)]);
    await decideSettlements(one, [chargeOf(organizationId, answered)]);
    const owned = [{ organizationId, hash }];
    expect([(await readPaidKeys(one, owned)).size, (await readStoredAnswers(one, owned)).size]).toEqual([1, 1]);
  };
  // Postgres keeps the plan of a prepared statement from its sixth run on.
  for (let run = 0; run < 8; run += 1) await useKey(`first ${run}`);
  await asOwner(
    url,
    `insert into answers (slot, organization_id, key_hash, request_id, body, fingerprint, expires_at)
       select answer_slot(now()), $1, 'many' || n, 'many' || n, $3, 'q', now() + interval '1 day' from generate_series(1, $2::int) n`,
    [organizationId, keys, body],
  );
  const before = await rowsScanned(one);
  await useKey("last");
  // Postgres counts some time after the end of a statement.
  await eventually(async () => (await rowsScanned(one)).lookups > before.lookups);
  expect((await rowsScanned(one)).rows - before.rows).toBeLessThan(keys);
});

test("Postgres inlines what a settlement computes for each search, instead of calling a function for it", async () => {
  const { database, url } = await openFreshDatabase(onTestFinished, { sizeMax: 1 });
  await createPayer(database, 100);
  const { rows } = await asOwner(
    url,
    `explain (verbose, format json) select month_of(o.spending_day), utc_today(), left_of(o.day_limit_mils, 1, 2),
         spending_text(o.spending_day, o.day_began_with_mils, o.month_began_with_mils) from organizations o`,
  );
  const { Output: computed } = rows[0]["QUERY PLAN"][0].Plan;
  expect(computed).toHaveLength(4);
  expect(computed.join(" ")).not.toMatch(/\b(month_of|utc_today|left_of|spending_text)\(/);
});

/** How often the tables of answers were looked up in, and how many of their rows were read one after the other. */
async function rowsScanned(of: Database): Promise<{ lookups: number; rows: number }> {
  const { rows } = await of.query(
    `select sum(idx_scan + seq_scan)::int as lookups, sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_user_tables
     where relname like 'answers%'`,
  );
  return rows[0];
}

import { afterAll, expect, test } from "vitest";
import { beginErasure, type ErasedRows, eraseRows } from "../../../commands/erasure/erase-organization.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** Erasing the rows of an organization, of which there may be millions. */

const opened = await openFreshDatabase(afterAll);
await opened.database.query("select rotate_days('search_log', 30)");

const tables = ["tokens", "answers", "search_log"];

/** An organization with rows of each kind: several searches in the same millisecond, today, tomorrow and long ago. */
async function customer(): Promise<string> {
  const made = await createOrganization(opened.database, { name: "Test", planCode: "payg" });
  const id = made?.organizationId ?? "";
  for (let count = 0; count < 12; count += 1) await issueToken(opened.database, id, { name: "n" });
  await opened.database.query("update tokens set revoked_at = now() where organization_id = $1", [id]);
  const inserts = [
    `insert into answers (slot, organization_id, key_hash, request_id, fingerprint, body, expires_at)
     select slot, $1, 'key' || n, 'r', 'f', 'body', now() from generate_series(0, 3) slot, generate_series(1, 5) n`,
    `insert into search_log (at, request_id, organization_id, token_id, keyword, location, language, device, depth, duration_ms)
     select date_trunc('day', now()) + (n / 8 - 1) * interval '1 day' - ago, 'req' || n, $1, 't', 'k', 'l', 'l', 'd', 10, 1
     from generate_series(1, 24) n, (values (interval '0'), ('90 days')) t (ago)`,
  ];
  await asOwner(opened.url, async (client) => {
    for (const insert of inserts) await client.query(insert, [id]);
  });
  return id;
}

/** How many rows of these tables still tell something. */
async function rowsOf(organizationId: string): Promise<number[]> {
  const counted = tables.map(async (table) => {
    const left = table === "tokens" ? "name is not null" : "true";
    const { rows } = await opened.database.query(
      `select count(*)::integer as rows from ${table} where organization_id = $1 and ${left}`,
      [organizationId],
    );
    return rows[0].rows;
  });
  return Promise.all(counted);
}

test("rows are erased a page at a time; an erasure that ends after any page is finished by the next ones", async () => {
  const [gone, other] = [await customer(), await customer()];
  const whole = [12, 20, 48];
  expect(await rowsOf(gone)).toEqual(whole);
  await opened.database.query("update organizations set suspended_at = now() where id = $1", [gone]);
  const actor = { kind: "operator", name: "ada", host: "here" } as const;
  expect(await beginErasure(opened.database, actor, gone)).toEqual({ balanceMils: 0 });

  const pages: number[] = [];
  let died = 0;
  for (let isWhole = false; !isWhole; ) {
    let [before, left] = [0, died + 1];
    const onPage = (erased: ErasedRows) => {
      const sum = Object.values(erased).reduce((all, rows) => all + rows, 0);
      pages.push(sum - before);
      before = sum;
      left -= 1;
      if (left === 0) throw new Error("died");
    };
    isWhole = await eraseRows(opened.database, gone, { rowsMax: 10, onPage }).then(
      () => true,
      () => false,
    );
    if (!isWhole) died += 1;
  }
  expect(died).toBeGreaterThan(4);
  expect(await rowsOf(gone)).toEqual([0, 0, 0]);
  expect(await rowsOf(other)).toEqual(whole);
  // With those of the same millisecond as its last one.
  expect(Math.max(...pages)).toBeLessThan(10 + 16);
});

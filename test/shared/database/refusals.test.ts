import { afterAll, expect, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { migrate } from "../../../shared/database/migrate.ts";
import { openDatabase } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";

const log = openLog({ name: "test", level: "silent" });
const shutdown = new Shutdown();
const organizationId = newId("org");
const { url, drop } = await freshDatabase();
const database = openDatabase({ url, name: "test", sizeMax: 2, log, shutdown });
await database.query("insert into organizations (id, name, plan_code) values ($1, 'Test', 'free')", [organizationId]);
await database.query("select * from change_credit('grant', $1, 'g', 10, 'test')", [organizationId]);
afterAll(async () => {
  await shutdown.run(log);
  await drop();
});

const token = "insert into tokens (id, organization_id, hash, last4";
const tokenId = `'${newId("tok")}'`;
const tokenHash = "decode(repeat('00', 32), 'hex')";
const entry =
  "insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason)";

test.each([
  "update ledger_entries set amount_mils = 1",
  "delete from ledger_entries",
  "delete from refunds",
  "insert into refunds (request_id, organization_id, version, reason) values ('r', 'ORG', 1, 'x')",
  "update refund_counts set searches = 0",
  "truncate ledger_entries",
  "delete from organizations",
  "update undelivered set charged_at = now()",
  `${entry} values ('ORG', 2, 'grant', 1, 11, null, 'h', null)`,
  "update organizations set balance_mils = 1",
  "update organizations set version = 0",
  "update organizations set first_topup_at = null",
  "insert into organizations (id, name, plan_code, balance_mils) values ('o', 'o', 'free', 1)",
  "insert into undelivered (request_id, organization_id) values ('r', 'ORG')",
  "delete from answers",
  "insert into answers (slot, organization_id, key_hash) values (0, 'ORG', 'h')",
  "update answers set body = 'x'",
  "truncate answers_0",
  "select body from kept_answers",
  "update tokens set hash = 'x'",
  "update tokens set organization_id = 'ORG'",
  "update tokens set scopes = '{search}'",
  "update tokens set name = 'x'",
  "update plans set starting_grant_mils = 1",
  "delete from migrations",
  "delete from ledger_checkpoints",
  "update ledger_checkpoints set version = version + 1",
  "insert into ledger_checkpoints values ('org_1', 1, 0, now())",
  "update audit_entries set action = 'x'",
  "delete from audit_entries",
  "truncate audit_entries",
  "insert into audit_entries (at, actor_kind, action) values (now(), 'stripe', 'x')",
  "insert into audit_entries (id, actor_kind, action) overriding system value values (1, 'stripe', 'x')",
  "create function decide() returns int language sql return 1",
])("the role serpmill has no right to: %s", async (statement) => {
  await expect(database.query(statement.replace("ORG", organizationId))).rejects.toThrow(/permission denied/);
});

test.each(["alter function change_credit reset all", "alter table ledger_entries disable trigger all"])(
  "the role serpmill is not the owner, and so may not: %s",
  async (statement) => {
    await expect(database.query(statement)).rejects.toThrow(/must be owner/);
  },
);

test("every function that the role serpmill may call runs as its owner, with a fixed search path", async () => {
  const { rows } = await database.query(
    `select proname as name, prosecdef as definer, proconfig::text like '%search_path=public, pg_temp%' as fixed
     from pg_proc where pronamespace = 'public'::regnamespace and has_function_privilege(oid, 'execute') order by 1`,
  );
  const computing = new Set(["answer_slot", "month_of", "spending_text", "utc_today"]); // Those that use no table need no rights.
  expect(rows.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["change_credit", "reverse_charges", "decide_searches", "topup"]),
  );
  expect(rows.filter(({ name, definer, fixed }) => !computing.has(name) && !(definer && fixed))).toEqual([]);
});

test("only the role serpmill and the owner may call a function that moves money", async () => {
  const { rows } = await database.query(
    `select p.proname from pg_proc p, aclexplode(p.proacl) a
     where p.pronamespace = 'public'::regnamespace and a.grantee = 0`,
  );
  expect(rows).toEqual([]);
});

const oldEntry = (action: string, days: number) =>
  asOwner(
    url,
    `insert into audit_entries (at, actor_kind, action) values (now() - make_interval(days => $2), 'account', $1)`,
    [action, days],
  );

test.each([
  ["the ledger is append only", "update ledger_entries set reason = 'x'"],
  ["the ledger is append only", "delete from ledger_entries"],
  ["the ledger is append only", "truncate ledger_entries cascade"],
  ["the audit trail is append only", "update audit_entries set action = 'x'"],
  ["the audit trail is append only", "delete from audit_entries"],
  ["the audit trail is append only", "truncate audit_entries"],
])("not even the owner may, because it is %s: %s", async (refusal, statement) => {
  await oldEntry("session.opened", 89);
  await expect(asOwner(url, statement)).rejects.toThrow(refusal);
});

test("of the audit trail only sign-ins and sign-outs are deleted, once they are 90 days old", async () => {
  await Promise.all([oldEntry("session.opened", 91), oldEntry("session.closed", 92), oldEntry("token.revoked", 900)]);
  await database.query("insert into audit_entries (actor_kind, action) values ('account', 'session.opened')");
  const { rows } = await database.query("select clear_old_sign_ins(1) as one, clear_old_sign_ins(9) as rest");
  expect(rows).toEqual([{ one: 1, rest: 1 }]);
  const left = await database.query(
    "select action, now() - at > interval '90 days' as is_old from audit_entries where action <> 'session.opened'",
  );
  expect(left.rows).toEqual([{ action: "token.revoked", is_old: true }]);
  const old = "select from audit_entries where action = 'session.opened' and at < now() - interval '90 days'";
  expect((await database.query(old)).rowCount).toBe(0);
});

test("deleting old sign-ins reads only these, however many there are", async () => {
  const read = await asOwner(url, async (client) => {
    await client.query(
      `insert into audit_entries (at, actor_kind, action) select now() - make_interval(days => 100, secs => -n), 'account', 'session.opened'
       from generate_series(1, 20000) n`,
    );
    await client.query("analyze audit_entries");
    // As Postgres before version 18 plans each function in SQL: it does not know how many are to be deleted.
    await client.query("set plan_cache_mode = force_generic_plan");
    await client.query("begin; select clear_old_sign_ins(10)");
    return client.query(
      "select seq_tup_read::int as rows from pg_stat_xact_user_tables where relname = 'audit_entries'",
    );
  });
  expect(read.rows).toEqual([{ rows: 0 }]);
});

test.each([
  ["balance_is_never_below_zero", "update organizations set balance_mils = -1"],
  ["balance_is_never_below_zero", "update organizations set balance_mils = 9007199254740992"],
  ["one_entry_per_version", `${entry} values ('ORG', 1, 'grant', 1, 1, null, 'h', null)`],
  ["entry_kind_is_known", `${entry} values ('ORG', 2, 'refund', 0, 1, 'r', null, 'x')`],
  ["only_charges_and_corrections_lower_a_balance", `${entry} values ('ORG', 2, 'reversal', -1, 1, 'r', null, 'x')`],
  ["only_charges_and_corrections_lower_a_balance", `${entry} values ('ORG', 2, 'charge', 1, 1, 'r', null, null)`],
  ["balance_after_is_never_below_zero", `${entry} values ('ORG', 2, 'charge', -20, -10, 'r', null, null)`],
  ["credit_has_a_grant_id_and_a_search_a_request_id", `${entry} values ('ORG', 2, 'grant', 1, 1, 'r', null, null)`],
  ["a_reversal_and_a_correction_have_a_reason", `${entry} values ('ORG', 2, 'reversal', 0, 10, 'r', null, null)`],
  ["only_charges_and_corrections_lower_a_balance", `${entry} values ('ORG', 2, 'correction', 0, 10, null, 'c', 'x')`],
  ["a_reversal_and_a_correction_have_a_reason", `${entry} values ('ORG', 2, 'correction', -1, 9, null, 'c', null)`],
  [
    "credit_has_a_grant_id_and_a_search_a_request_id",
    `${entry} values ('ORG', 2, 'correction', -1, 9, 'r', null, 'x')`,
  ],
  ["one_entry_per_grant", `${entry} values ('ORG', 2, 'grant', 1, 11, null, 'g', null)`],
  ["organization_id_is_a_typeid", "insert into organizations (id, name, plan_code) values ('acme', 'Acme', 'free')"],
  ["token_has_known_scopes", `${token}, scopes) values (${tokenId}, 'ORG', ${tokenHash}, 'last', '{}')`],
  ["token_has_known_scopes", `${token}, scopes) values (${tokenId}, 'ORG', ${tokenHash}, 'last', '{search,fly}')`],
  ["token_has_known_scopes", `${token}, scopes) values (${tokenId}, 'ORG', ${tokenHash}, 'last', '{search,null}')`],
  [
    "token_name_is_not_blank",
    `${token}, scopes, name) values (${tokenId}, 'ORG', ${tokenHash}, 'last', '{search}', ' ')`,
  ],
  ["window_admits_at_least_one", "update plans set window_limit = 0"],
  ["cached_price_is_at_most_the_price", "update plans set cached_price_mils = 6"],
  ["price_is_never_negative", "update plans set price_mils = -1"],
  ["price_per_page_is_never_negative", "update plans set price_mils = null, price_per_page_mils = -1"],
  ["plan_has_one_price", "update plans set price_per_page_mils = 1"],
  ["plan_has_one_price", "update plans set price_mils = null"],
  ["max_depth_is_a_depth", "update plans set max_depth = 0"],
])("the database enforces the constraint %s (%s)", async (constraint, statement) => {
  const broken = asOwner(url, statement.replace("ORG", organizationId));
  await expect(broken).rejects.toThrow(constraint);
});

test("the database refuses a second charge and a second reversal", async () => {
  const insert = (version: number, kind: string, mils: number) =>
    asOwner(url, `${entry} values ($1, $2, $3, $4, 10, 'req', null, 'x')`, [organizationId, version, kind, mils]);
  await insert(2, "charge", 0);
  await expect(insert(3, "charge", 0)).rejects.toThrow("one_charge_per_request");
  await insert(4, "reversal", 0);
  await expect(insert(5, "reversal", 0)).rejects.toThrow("one_reversal_per_request");
});

test("migrations that run twice or concurrently are applied once", async () => {
  expect(await Promise.all([migrate(url), migrate(url)])).toEqual([[], []]);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { Shutdown } from "../../../shared/process/shutdown.ts";
import { migrate } from "../../../shared/database/migrate.ts";
import { type Database, openDatabase } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";

const log = openLog({ name: "test", level: "silent" });
const shutdown = new Shutdown();
const organizationId = newId("org");
let url: string;
let database: Database;
let drop: () => Promise<void>;

beforeAll(async () => {
  ({ url, drop } = await freshDatabase());
  database = openDatabase({ url, name: "test", sizeMax: 2, log, shutdown });
  await database.query("insert into organizations (id, name, plan_code) values ($1, 'Test', 'free')", [organizationId]);
  await database.query("select * from grant_credit($1, 'g', 10, 'test')", [organizationId]);
});
afterAll(async () => {
  await shutdown.run(log);
  await drop();
});

test.each([
  ["update ledger_entries set amount_mils = 1", /permission denied/],
  ["delete from ledger_entries", /permission denied/],
  ["truncate ledger_entries", /permission denied/],
  ["delete from organizations", /permission denied/],
  ["update undelivered set charged_at = now()", /permission denied/],
])("the role serpmill is not allowed to: %s", async (statement, refusal) => {
  await expect(database.query(statement)).rejects.toThrow(refusal);
});

test.each(["update ledger_entries set reason = 'x'", "delete from ledger_entries", "truncate ledger_entries cascade"])(
  "not even the owner may: %s",
  async (statement) => {
    await expect(asOwner(url, (client) => client.query(statement))).rejects.toThrow(/append only/);
  },
);

const entry =
  "insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason)";

test.each([
  ["balance_is_never_below_zero", "update organizations set balance_mils = -1"],
  ["balance_is_never_below_zero", "update organizations set balance_mils = 9007199254740992"],
  ["one_entry_per_version", `${entry} values ('ORG', 1, 'grant', 1, 1, null, 'h', null)`],
  ["entry_kind_is_known", `${entry} values ('ORG', 2, 'gift', 1, 1, 'r', null, 'x')`],
  ["only_charges_lower_a_balance", `${entry} values ('ORG', 2, 'refund', -1, 1, 'r', null, 'x')`],
  ["only_charges_lower_a_balance", `${entry} values ('ORG', 2, 'charge', 1, 1, 'r', null, null)`],
  ["balance_after_is_never_below_zero", `${entry} values ('ORG', 2, 'charge', -20, -10, 'r', null, null)`],
  ["grants_have_a_grant_id_and_the_rest_a_request_id", `${entry} values ('ORG', 2, 'grant', 1, 1, 'r', null, null)`],
  ["whoever_gives_back_says_why", `${entry} values ('ORG', 2, 'refund', 0, 10, 'r', null, null)`],
  ["one_entry_per_grant", `${entry} values ('ORG', 2, 'grant', 1, 11, null, 'g', null)`],
  ["organization_id_is_a_typeid", "insert into organizations (id, name, plan_code) values ('acme', 'Acme', 'free')"],
  ["window_admits_at_least_one", "update plans set window_limit = 0"],
  ["price_is_never_negative", "update plans set price_mils = -1"],
])("the database enforces the constraint %s (%s)", async (constraint, statement) => {
  await expect(database.query(statement.replace("ORG", organizationId))).rejects.toThrow(constraint);
});

test("the database refuses a second deciding entry and a second reversal", async () => {
  const insert = (version: number, kind: string, mils: number) =>
    database.query(`${entry} values ($1, $2, $3, $4, 10, 'req', null, 'x')`, [organizationId, version, kind, mils]);
  await insert(2, "refund", 0);
  await expect(insert(3, "charge", 0)).rejects.toThrow("one_deciding_entry_per_request");
  await insert(4, "reversal", 0);
  await expect(insert(5, "reversal", 0)).rejects.toThrow("one_reversal_per_request");
});

test("migrations that run twice or concurrently are applied once", async () => {
  expect(await Promise.all([migrate(url), migrate(url)])).toEqual([[], []]);
});

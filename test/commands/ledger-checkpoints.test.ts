import { expect, onTestFinished, test } from "vitest";
import { verifyLedger } from "../../commands/ledger.ts";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { newId } from "../../shared/ids.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";

/** The checkpoints from which `ledger verify` goes on. Each test has a database of its own, because a check reads all organizations. */

const priceMils = 5;
const checkpointRule = "a checkpoint is an entry of its organization's ledger";
const runningRule = "each entry's balance is the one before it plus its amount, and never below 0";

async function openLedger() {
  const { database, url } = await openFreshDatabase(onTestFinished);
  const organizationId = await createPayer(database, 1_000_000);
  const check = (isFull = false) => verifyLedger(database, undefined, { isFull });
  return {
    database,
    organizationId,
    check,
    /** Which rules are broken, and how many entries the check has read. */
    outcome: async (isFull = false) => {
      const { violations, readEntries } = await check(isFull);
      return { broken: violations.map(({ rule }) => rule), readEntries };
    },
    charge: (searches: number) =>
      decideSettlements(
        database,
        Array.from({ length: searches }, () => chargeOf(organizationId, { priceMils })),
      ),
    checkpoint: async () => {
      const { rows } = await database.query("select version, balance_mils from ledger_checkpoints");
      return rows;
    },
    /** Runs statements as the owner, around everything that protects the ledger. `$1` is the organization. */
    tamper: (...statements: string[]) =>
      asOwner(url, async (owner) => {
        await owner.query("set session_replication_role = replica");
        for (const statement of statements)
          await owner.query(statement, statement.includes("$1") ? [organizationId] : []);
      }),
    own: (statement: string) => asOwner(url, (owner) => owner.query(statement, [organizationId])),
  };
}

test("the usual check reads what is new, and the full one everything", async () => {
  const { charge, outcome, checkpoint } = await openLedger();
  await charge(9);
  expect(await outcome()).toEqual({ broken: [], readEntries: 10 });
  expect(await outcome()).toEqual({ broken: [], readEntries: 0 });
  await charge(3);
  expect(await outcome()).toEqual({ broken: [], readEntries: 3 });
  expect(await checkpoint()).toEqual([{ version: 13, balance_mils: 1_000_000 - 12 * priceMils }]);
  expect(await outcome(true)).toEqual({ broken: [], readEntries: 13 });
});

test("an old entry that was altered is found by the full check", async () => {
  const { charge, outcome, tamper } = await openLedger();
  await charge(9);
  await outcome();
  await tamper("update ledger_entries set amount_mils = -4 where organization_id = $1 and version = 5");
  expect(await outcome()).toEqual({ broken: [], readEntries: 0 });
  const { broken } = await outcome(true);
  expect(broken).toEqual([runningRule, "a balance is the sum of its organization's ledger entries"]);
});

test("what is wrong in new entries is found again by each check", async () => {
  const { charge, outcome, tamper, checkpoint } = await openLedger();
  await charge(3);
  await outcome();
  await charge(3);
  await tamper("update ledger_entries set balance_after_mils = 7 where organization_id = $1 and version = 7");
  for (let run = 0; run < 2; run += 1) expect(await outcome()).toEqual({ broken: [runningRule], readEntries: 3 });
  expect(await checkpoint()).toMatchObject([{ version: 4 }]);
});

test("a checkpoint ahead of a ledger that was restored without it is reported until the owner deletes it", async () => {
  const { charge, outcome, tamper, own, checkpoint } = await openLedger();
  await charge(9);
  await outcome();
  await tamper(
    "delete from undelivered where organization_id = $1",
    "delete from ledger_entries where organization_id = $1 and version > 8",
    `update organizations set version = 8, balance_mils = 1000000 - ${7 * priceMils} where id = $1`,
  );
  for (const isFull of [false, true])
    expect(await outcome(isFull)).toEqual({ broken: [checkpointRule], readEntries: 8 });
  // The ledger goes on beyond its version with another history.
  await charge(1);
  await own("select change_credit('grant', $1, 'other', 1, 'test')");
  await charge(3);
  for (const isFull of [false, true])
    expect(await outcome(isFull)).toEqual({ broken: [checkpointRule], readEntries: 13 });
  expect(await checkpoint()).toEqual([{ version: 10, balance_mils: 1_000_000 - 9 * priceMils }]);
  await own("delete from ledger_checkpoints where organization_id = $1");
  expect(await outcome()).toEqual({ broken: [], readEntries: 13 });
});

const longEntries = 45_000;
const tokenId = newId("tok");

/** Adds charges to the ledger as a settlement writes them, in one statement. */
const addCharges = `
  with entry as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
    select id, version + n, 'charge', -1, balance_mils - n, id || n, '${tokenId}'
    from organizations, generate_series(1, ${longEntries - 1}) n where id = $1)
  update organizations set version = version + ${longEntries - 1}, balance_mils = balance_mils - ${longEntries - 1} where id = $1`;

test("a check that dies goes on where it was, slice by slice", async () => {
  const { outcome, own, checkpoint, tamper } = await openLedger();
  await own(addCharges);
  await tamper(
    "set session_replication_role = origin",
    "create function fail() returns trigger language plpgsql as $$ begin raise exception 'it dies here'; end $$",
    "create trigger fails before update on ledger_checkpoints for each row execute function fail()",
  );
  await expect(outcome()).rejects.toThrow("it dies here");
  const [first] = await checkpoint();
  expect(first.version).toBeGreaterThan(0);
  await tamper("drop trigger fails on ledger_checkpoints");
  expect(await outcome()).toEqual({ broken: [], readEntries: longEntries - first.version });
  expect(await checkpoint()).toMatchObject([{ version: longEntries }]);
  // From which a limit of a token counts.
  await tamper("update token_sums set mils = mils + 1 where organization_id = $1 and chunk = 7");
  const { broken } = await outcome(true);
  expect(broken).toEqual(["what a token spent in 4,096 entries is on record"]);
});

test("checks at once, while searches are charged, agree and leave the newest checkpoint", async () => {
  const { database, organizationId, charge, check, outcome, checkpoint } = await openLedger();
  const checks: Promise<{ ok: boolean }>[] = [];
  for (let round = 0; round < 10; round += 1) {
    checks.push(check(), check(round % 3 === 0));
    await charge(20);
  }
  expect((await Promise.all(checks)).filter(({ ok }) => !ok)).toEqual([]);
  await outcome();
  expect(await checkpoint()).toMatchObject([{ version: 201 }]);
  const keep = (version: number, mils: number) =>
    database.query("select keep_ledger_checkpoints($1, $2, $3, now())", [[organizationId], [version], [mils]]);
  await keep(2, 1_000_000 - priceMils);
  await charge(2);
  await keep(203, 0);
  expect(await checkpoint()).toMatchObject([{ version: 201 }]);
});

test("a count of spending that is wrong is found, also without a new entry", async () => {
  const { database, organizationId, charge, outcome, own, tamper } = await openLedger();
  await charge(3);
  await outcome();
  await database.query("select limit_organization($1, 100, 1000)", [organizationId]);
  expect(await outcome()).toEqual({ broken: [], readEntries: 0 });
  await charge(3);
  expect(await outcome()).toEqual({ broken: [], readEntries: 3 });
  // A check of an earlier day says nothing about this one; the next check of a quiet organization does.
  await own("update ledger_checkpoints set checked_at = now() - interval '3 days' where organization_id = $1");
  expect(await outcome()).toEqual({ broken: [], readEntries: 0 });
  const { rows } = await database.query(
    "select now() - checked_at < interval '1 hour' as is_fresh from ledger_checkpoints",
  );
  expect(rows).toEqual([{ is_fresh: true }]);
  await tamper("update organizations set day_began_with_mils = day_began_with_mils + 1 where id = $1");
  const { broken } = await outcome();
  expect(broken).toEqual(["an organization's limit usage equals its ledger's total for the period"]);
});

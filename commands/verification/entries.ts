import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import type { LongQuery } from "../../shared/database/transaction.ts";
import { pagesOfOrganizations } from "../../shared/organizations/organizations.ts";
import { countingDayOf, entryRules, ofSlice, spendingRules } from "./rules.ts";
import { type FoundViolations, type LedgerPart, readPart, shownMax, slicesOf } from "./violations.ts";

const organizationsPerPage = 500;
/** Read in one transaction, which takes less than a second. */
const entriesPerSlice = 20_000;

const sumRule = "a balance is the sum of its organization's ledger entries";
const gapRule = "versions run from 1 without a gap";
const checkpointRule = "a checkpoint is an entry of its organization's ledger";

/** How far an organization's ledger has been read. */
interface Account {
  id: string;
  /** As the organization has them. */
  version: number;
  balanceMils: number;
  /** The version of the last entry that was read, the balance after it, and the sum of all amounts up to it. */
  readVersion: number;
  readBalanceMils: number;
  sumMils: number;
  /** Whether its checkpoint stays as it is: a violation must be found again by the next check. */
  isBroken: boolean;
}

type Part = LedgerPart<Account>;

/** What was read: the organizations, the entries that they have, and how many of these this check has read. */
export interface EntryCounts {
  organizations: number;
  entries: number;
  readEntries: number;
}

/**
 * Checks the entries of each organization from its checkpoint on, or all of them, in slices: no transaction is long. Entries never
 * change, so slices need no common snapshot. After each slice without a violation the checkpoints move behind it, so a check that
 * was interrupted goes on from there.
 */
export async function verifyEntries(
  database: Database,
  { isFull, found }: { isFull: boolean; found: FoundViolations },
): Promise<EntryCounts> {
  const counts: EntryCounts = { organizations: 0, entries: 0, readEntries: 0 };
  for await (const ids of pagesOfOrganizations(database, organizationsPerPage)) {
    const { accounts, idle, readAt } = await readAccounts(database, { ids, isFull, found });
    counts.organizations += accounts.length;
    counts.entries += accounts.reduce((sum, { version }) => sum + version, 0);
    await keepCheckpoints(database, idle, readAt);
    for (const slice of slicesOf(accounts.map(unreadOf), entriesPerSlice)) {
      counts.readEntries += await verifySlice(database, slice, found);
      await keepCheckpoints(
        database,
        slice.map(({ account }) => account),
        readAt,
      );
    }
    for (const { id, balanceMils, sumMils } of accounts.filter((one) => one.sumMils !== one.balanceMils))
      found.add({ rule: sumRule, subject: id, found: `balance ${balanceMils}, entries sum to ${sumMils}` });
  }
  return counts;
}

const unreadOf = (account: Account): Part => ({
  account,
  firstVersion: account.readVersion + 1,
  nextVersion: account.version + 1,
});

const accountRow = rowOf({
  id: z.string(),
  version: z.number(),
  balanceMils: z.number(),
  lastVersion: z.number().nullable(),
  checkedVersion: z.number().nullable(),
  checkedBalanceMils: z.number().nullable(),
  /** That of the entry of the checkpoint. */
  ledgerBalanceMils: z.number().nullable(),
  /** Whether the checkpoint is of an earlier day, so that the counts of spending are compared again without it. */
  isStale: z.boolean(),
  readAt: z.date(),
});
type AccountRow = z.infer<typeof accountRow>;

const [checkedDay, presentDay] = [countingDayOf("c.checked_at"), countingDayOf("now()")];

/** Reads organizations, with what they spent and how far they were checked. */
async function readAccounts(
  database: Database,
  { ids, isFull, found }: { ids: string[]; isFull: boolean; found: FoundViolations },
) {
  return readPart(database, async (read) => {
    const { rows } = await read(
      `select o.id, o.version, o.balance_mils, c.version as checked_version, c.balance_mils as checked_balance_mils,
         (select max(l.version) from ledger_entries l where l.organization_id = o.id and l.version > o.version) as last_version,
         (select l.balance_after_mils from ledger_entries l where l.organization_id = o.id and l.version = c.version)
           as ledger_balance_mils,
         coalesce(${checkedDay} < ${presentDay}, false) as is_stale, now() as read_at
       from organizations o left join ledger_checkpoints c on c.organization_id = o.id
       where o.id = any($1) order by o.id`,
      [ids],
    );
    const organizations = rows.map((row) => accountRow.parse(row));
    const broken = await verifySpending(read, { ids, isFull, found });
    const accounts = organizations.map((row) => openAccount(row, { isFull, isBroken: broken.has(row.id), found }));
    const idle = accounts.filter(
      (account, at) => account.readVersion === account.version && organizations[at]?.isStale,
    );
    return { accounts, idle, readAt: organizations[0]?.readAt ?? new Date() };
  });
}

const brokenCountRow = rowOf({ organizationId: z.string(), subject: z.string(), found: z.string() });

/** Compares the counts of spending. @returns the organizations with a wrong one. */
async function verifySpending(
  read: LongQuery,
  { ids, isFull, found }: { ids: string[]; isFull: boolean; found: FoundViolations },
): Promise<Set<string>> {
  const broken = new Set<string>();
  for (const [rule, query] of Object.entries(spendingRules)) {
    const { rows } = await read(query, [ids, isFull]);
    for (const row of rows) {
      const { organizationId, ...violation } = brokenCountRow.parse(row);
      broken.add(organizationId);
      found.add({ rule, ...violation });
    }
  }
  return broken;
}

/** An organization whose checkpoint disagrees with its ledger is read from its first entry. */
function openAccount(
  row: AccountRow,
  { isFull, isBroken, found }: { isFull: boolean; isBroken: boolean; found: FoundViolations },
): Account {
  const { id, version, balanceMils, lastVersion, checkedVersion, checkedBalanceMils, ledgerBalanceMils } = row;
  if (lastVersion !== null)
    found.add({ rule: gapRule, subject: id, found: `version ${version}, an entry of version ${lastVersion}` });
  const isSound = checkedVersion === null || (checkedVersion <= version && ledgerBalanceMils === checkedBalanceMils);
  if (!isSound) {
    const now = ledgerBalanceMils === null ? `no such entry, the last one is ${version}` : `${ledgerBalanceMils} now`;
    const text = `${checkedBalanceMils} mils after version ${checkedVersion} when it was checked, ${now}`;
    found.add({ rule: checkpointRule, subject: id, found: text });
  }
  const begins = isFull || !isSound ? 0 : (checkedBalanceMils ?? 0);
  return {
    id,
    version,
    balanceMils,
    readVersion: isFull || !isSound ? 0 : (checkedVersion ?? 0),
    readBalanceMils: begins,
    sumMils: begins,
    isBroken: isBroken || !isSound || lastVersion !== null,
  };
}

const totalsRow = rowOf({
  organizationId: z.string(),
  entries: z.number(),
  amountMils: z.number(),
  lastBalanceMils: z.number().nullable(),
});
const brokenRuleRow = z.object({ rule: z.number(), subject: z.string(), found: z.string() });

/** Checks a slice, and notes how far its accounts have been read. @returns how many entries it read. */
async function verifySlice(database: Database, slice: readonly Part[], found: FoundViolations): Promise<number> {
  const values = [
    slice.map(({ account }) => account.id),
    slice.map(({ firstVersion }) => firstVersion - 1),
    slice.map(({ nextVersion }) => nextVersion - 1),
    slice.map(({ account }) => account.readBalanceMils),
  ];
  const rules = Object.entries(entryRules);
  const unions = rules.map(([, query], at) => `(select ${at} as rule, v.* from (${query}) v limit ${shownMax})`);
  const { totals, broken } = await readPart(database, async (read) => ({
    totals: (await read(totalsOfSlice, values)).rows.map((row) => totalsRow.parse(row)),
    broken: (await read(`${ofSlice} ${unions.join(" union all ")}`, values)).rows.map((row) =>
      brokenRuleRow.parse(row),
    ),
  }));
  for (const { rule, ...violation } of broken) found.add({ rule: rules[rule]?.[0] ?? "", ...violation });
  const byId = new Map(totals.map((total) => [total.organizationId, total]));
  for (const { account, firstVersion, nextVersion } of slice) {
    const { entries = 0, amountMils = 0, lastBalanceMils } = byId.get(account.id) ?? {};
    const isWhole = entries === nextVersion - firstVersion;
    if (!isWhole) {
      const text = `version ${account.version}, ${entries} entries from ${firstVersion} to ${nextVersion - 1}`;
      found.add({ rule: gapRule, subject: account.id, found: text });
    }
    // A request's violation names no organization, so all of the slice are read again next time.
    account.isBroken ||= broken.length > 0 || !isWhole;
    account.readVersion = nextVersion - 1;
    account.sumMils += amountMils;
    account.readBalanceMils = lastBalanceMils ?? account.sumMils;
  }
  return totals.reduce((sum, { entries }) => sum + entries, 0);
}

const totalsOfSlice = `${ofSlice}
  select p.organization_id, count(e.version) as entries, coalesce(sum(e.amount_mils), 0)::bigint as amount_mils,
    max(e.balance_after_mils) filter (where e.version = p.last_version) as last_balance_mils
  from part p left join entry e on e.organization_id = p.organization_id group by p.organization_id`;

async function keepCheckpoints(database: Database, accounts: readonly Account[], readAt: Date): Promise<void> {
  const sound = accounts.filter(({ isBroken, readVersion }) => !isBroken && readVersion > 0);
  if (sound.length === 0) return;
  await database.query("select keep_ledger_checkpoints($1, $2, $3, $4)", [
    sound.map(({ id }) => id),
    sound.map(({ readVersion }) => readVersion),
    sound.map(({ readBalanceMils }) => readBalanceMils),
    readAt,
  ]);
}

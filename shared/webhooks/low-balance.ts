import { z } from "zod";
import { type Changer, recordAudit } from "../audit/audit.ts";
import type { Config } from "../config.ts";
import { waitingBriefly } from "../credits/ledger.ts";
import { outlookOf, readPaceDays } from "../credits/outlook.ts";
import type { Database } from "../database/pool.ts";
import { rowOf, valueOf } from "../database/row.ts";
import { inTransaction, type Querying } from "../database/transaction.ts";
import { recordEvent } from "./webhook-events.ts";
import { takeTurn } from "./webhooks.ts";

/**
 * The threshold below which a payer wants to be notified. The balance is the ledger's, so mils held by searches in flight are
 * still in it. Maintenance polls the balances, so no search waits for this. It records one event when it sees the balance below
 * the threshold, and arms the threshold again when it sees the balance above.
 */

/** Reads the threshold of an organization in mils; null if it has none. */
export async function readThreshold(database: Querying, organizationId: string): Promise<number | null> {
  const { rows } = await database.query(
    "select threshold_mils from low_balance_thresholds where organization_id = $1",
    [organizationId],
  );
  return rows[0] ? valueOf(z.number(), rows[0]) : null;
}

/** Sets the threshold in mils; null removes it. A new threshold is armed. */
export async function setThreshold(transaction: Querying, changer: Changer, mils: number | null): Promise<void> {
  const { organizationId } = changer;
  await takeTurn(transaction, organizationId);
  const before = await readThreshold(transaction, organizationId);
  if (mils === before) return;
  if (mils === null)
    await transaction.query("delete from low_balance_thresholds where organization_id = $1", [organizationId]);
  else
    await transaction.query(
      `insert into low_balance_thresholds (organization_id, threshold_mils) values ($1, $2)
       on conflict (organization_id) do update set threshold_mils = excluded.threshold_mils, below_since = null`,
      [organizationId, mils],
    );
  const values = { before: { thresholdMils: before }, after: { thresholdMils: mils } };
  await recordAudit(transaction, { ...changer, action: "low_balance.set", ...values });
}

/** Each change is a transaction, and the leader has three seconds for a step. */
const changesMax = 100;
/** A row that is locked costs a quarter of a second or two. */
const failuresMax = 3;

const changedRow = rowOf({ organizationId: z.string(), isBelow: z.boolean(), wasBelow: z.boolean() });

/**
 * Looks at one page of thresholds, behind the organization `after`, and records an event for each balance that came below
 * its threshold. An organization whose notice fails keeps none behind it from theirs; its own comes in a later round.
 * @returns the organization behind which the next page begins, empty after the last one; and the errors of those that failed.
 */
export async function noticeLowBalances(
  { database, config }: { database: Database; config: Pick<Config, "TOPUP_URL"> },
  { after, limit }: { after: string; limit: number },
): Promise<{ after: string; errors: unknown[] }> {
  const { rows } = await database.query({
    name: "read_thresholds",
    text: `select t.organization_id, o.balance_mils < t.threshold_mils as is_below, t.below_since is not null as was_below
      from (select * from low_balance_thresholds where organization_id > $1 order by organization_id limit $2) t
      join organizations o on o.id = t.organization_id
      order by t.organization_id`,
    values: [after, limit],
  });
  const page = rows.map((row) => changedRow.parse(row));
  const errors: unknown[] = [];
  let changes = 0;
  for (const { organizationId, isBelow, wasBelow } of page) {
    if (isBelow === wasBelow) continue;
    const changing = isBelow
      ? recordCrossing(database, organizationId, config.TOPUP_URL)
      : armAgain(database, organizationId);
    await changing.catch((error: unknown) => errors.push(error));
    changes += 1;
    if (changes === changesMax || errors.length === failuresMax) return { after: organizationId, errors };
  }
  return { after: page.length === limit ? (page.at(-1)?.organizationId ?? "") : "", errors };
}

const crossedRow = rowOf({ balanceMils: z.number(), thresholdMils: z.number() });

/** Marks the crossing and records its event, in one transaction. A second leader finds the mark. */
async function recordCrossing(database: Database, organizationId: string, topupUrl: string): Promise<void> {
  await inTransaction(database, async (transaction) => {
    const { rows } = await transaction.query(
      `update low_balance_thresholds t set below_since = now() from organizations o
       where t.organization_id = (select $1::text ${waitingBriefly}) and o.id = t.organization_id
         and t.below_since is null and o.balance_mils < t.threshold_mils
       returning o.balance_mils, t.threshold_mils`,
      [organizationId],
    );
    if (!rows[0]) return;
    const crossed = crossedRow.parse(rows[0]);
    const now = new Date();
    const outlook = outlookOf(await readPaceDays(transaction, organizationId, now), crossed.balanceMils, now);
    const data = { ...crossed, endsOn: outlook?.endsOn ?? null, topupUrl };
    await recordEvent(transaction, organizationId, { type: "balance.low", data });
  });
}

async function armAgain(database: Database, organizationId: string): Promise<void> {
  await database.query(
    `update low_balance_thresholds t set below_since = null from organizations o
     where t.organization_id = (select $1::text ${waitingBriefly}) and o.id = t.organization_id and o.balance_mils >= t.threshold_mils`,
    [organizationId],
  );
}

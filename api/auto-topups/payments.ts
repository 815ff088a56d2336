import { z } from "zod";
import type { Querying } from "../../shared/database/transaction.ts";
import { newId } from "../../shared/ids.ts";

/**
 * Payments of automatic top-ups. A payment is
 *
 * - `open` from {@link beginPayment}, which writes its row before Stripe is asked. Its id is the Idempotency-Key and stands in
 *   the metadata of the PaymentIntent, so that a process that takes the payment over finds what was charged. One process has
 *   it at a time; when its claim ends, {@link claimPayments} gives it to another. An organization has at most one open payment.
 * - `paid` once Stripe says so: in the transaction that adds the credit. Also if it was believed to have failed.
 * - `failed` once it is certain that Stripe did not charge it. Then it leaves room below the ceiling again.
 */

/** Longer than a process takes for one attempt, its call to Stripe included. */
const claimSeconds = 100;

/** A payment that this process has for now. */
export interface ClaimedPayment {
  paymentId: string;
  organizationId: string;
  customerId: string;
  paymentMethodId: string;
  mils: number;
  askedAt: Date;
  /** Counting this one. Before the second, Stripe may have charged the card. */
  attempts: number;
  /** Whether automatic top-ups are on and not paused, with this card. */
  mayCharge: boolean;
}

const lowRow = z.object({ organization_id: z.string() });

/**
 * Lists organizations of one page, behind the organization `after`, whose payment seems to be due. {@link beginPayment}
 * decides. Like thresholds of payers, balances are looked at from time to time, so that no search waits for it.
 * @returns with them the organization behind which the next page begins: empty after the last one.
 */
export async function findLowBalances(
  database: Querying,
  { after, limit }: { after: string; limit: number },
): Promise<{ organizationIds: string[]; after: string }> {
  const { rows } = await database.query({
    name: "find_low_balances",
    text: `select a.organization_id, o.balance_mils < a.threshold_mils and a.next_payment_at <= now() and o.suspended_at is null
        and not exists (select from auto_topup_payments p where p.organization_id = a.organization_id and p.state = 'open')
        as is_due
      from (select * from auto_topups where organization_id > $1 and is_on and paused_at is null
        order by organization_id limit $2) a
      join organizations o on o.id = a.organization_id
      order by a.organization_id`,
    values: [after, limit],
  });
  const page = rows.map((row) => lowRow.extend({ is_due: z.boolean() }).parse(row));
  return {
    organizationIds: page.filter((row) => row.is_due).map((row) => row.organization_id),
    after: page.length === limit ? (page.at(-1)?.organization_id ?? "") : "",
  };
}

const begunRow = z.object({
  customer_id: z.string(),
  payment_method_id: z.string(),
  mils: z.number(),
  asked_at: z.date(),
});

/** Writes the row of a payment, if one is due. @returns it, claimed by this process; undefined if none is due. */
export async function beginPayment(database: Querying, organizationId: string): Promise<ClaimedPayment | undefined> {
  const paymentId = newId("pay");
  const { rows } = await database.query("select * from begin_auto_topup($1, $2, $3)", [
    organizationId,
    paymentId,
    claimSeconds,
  ]);
  if (!rows[0]) return undefined;
  const row = begunRow.parse(rows[0]);
  return {
    paymentId,
    organizationId,
    customerId: row.customer_id,
    paymentMethodId: row.payment_method_id,
    mils: row.mils,
    askedAt: row.asked_at,
    attempts: 1,
    mayCharge: true,
  };
}

const claimedRow = begunRow.extend({
  id: z.string(),
  organization_id: z.string(),
  attempts: z.number(),
  may_charge: z.boolean(),
});

/** Claims open payments whose time has come: the process before died, or Stripe gave no answer. */
export async function claimPayments(database: Querying, limit: number): Promise<ClaimedPayment[]> {
  const { rows } = await database.query({
    name: "claim_auto_topups",
    text: "select * from claim_auto_topups($1, $2)",
    values: [limit, claimSeconds],
  });
  return rows
    .map((row) => claimedRow.parse(row))
    .map((row) => ({
      paymentId: row.id,
      organizationId: row.organization_id,
      customerId: row.customer_id,
      paymentMethodId: row.payment_method_id,
      mils: row.mils,
      askedAt: row.asked_at,
      attempts: row.attempts,
      mayCharge: row.may_charge,
    }));
}

/** Sets when a payment without an answer is looked at again. */
export async function postponePayment(
  database: Querying,
  { paymentId, attempts }: ClaimedPayment,
  pauseSeconds: number,
): Promise<void> {
  await database.query("select postpone_auto_topup($1, $2, $3)", [paymentId, attempts, pauseSeconds]);
}

/** A payment as the export and the operator's command have it. */
export interface ListedPayment {
  paymentId: string;
  mils: number;
  askedAt: Date;
  state: string;
  attempts: number;
  customerId: string | null;
  paymentMethodId: string | null;
  paymentIntentId: string | null;
  failure: string | null;
  endedAt: Date | null;
}

const listedRow = z.object({
  id: z.string(),
  mils: z.number(),
  asked_at: z.date(),
  state: z.string(),
  attempts: z.number(),
  customer_id: z.string().nullable(),
  payment_method_id: z.string().nullable(),
  payment_intent_id: z.string().nullable(),
  failure: z.string().nullable(),
  ended_at: z.date().nullable(),
});

/** Lists the payments of an organization in the order of their ids, from the first one after the id `after`. */
export async function listPayments(
  database: Querying,
  organizationId: string,
  { after, limit }: { after: string; limit: number },
): Promise<ListedPayment[]> {
  const { rows } = await database.query(
    "select * from auto_topup_payments where organization_id = $1 and id > $2 order by id limit $3",
    [organizationId, after, limit],
  );
  return rows.map(readPayment);
}

/** Lists the newest payments of an organization, the newest first. */
export async function listNewestPayments(
  database: Querying,
  organizationId: string,
  limit: number,
): Promise<ListedPayment[]> {
  const { rows } = await database.query(
    "select * from auto_topup_payments where organization_id = $1 order by asked_at desc, id desc limit $2",
    [organizationId, limit],
  );
  return rows.map(readPayment);
}

function readPayment(stored: unknown): ListedPayment {
  const row = listedRow.parse(stored);
  return {
    paymentId: row.id,
    mils: row.mils,
    askedAt: row.asked_at,
    state: row.state,
    attempts: row.attempts,
    customerId: row.customer_id,
    paymentMethodId: row.payment_method_id,
    paymentIntentId: row.payment_intent_id,
    failure: row.failure,
    endedAt: row.ended_at,
  };
}

import { z } from "zod";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { newId } from "../../shared/ids.ts";

/**
 * Payments of automatic top-ups. A payment is
 *
 * - `open` from {@link beginPayment}, which writes its row before it asks Stripe. The id is the Idempotency-Key and part of the
 *   metadata of the PaymentIntent, so a process that takes over finds what was charged. One process claims it at a time; when
 *   the claim expires, {@link claimPayments} gives it to another. An organization has at most one open payment.
 * - `paid` once Stripe says so, in the transaction that adds the credit, even if it counted as failed before.
 * - `failed` once it is certain that Stripe did not charge it. From then on it does not count against the ceiling.
 */

/** Longer than a process takes for one attempt, its call to Stripe included. */
const claimSeconds = 100;

const claimedRow = rowOf({
  paymentId: z.string(),
  organizationId: z.string(),
  customerId: z.string(),
  paymentMethodId: z.string(),
  mils: z.number(),
  askedAt: z.date(),
  /** Counting this one. Before the second, Stripe may have charged the card. */
  attempts: z.number(),
  /** Whether such a payment would begin now, too: with this card and amount. */
  mayCharge: z.boolean(),
});
/** A payment that this process has for now. */
export type ClaimedPayment = z.infer<typeof claimedRow>;

const lowRow = rowOf({ organizationId: z.string(), isDue: z.boolean() });

/**
 * Lists organizations of one page, behind the organization `after`, whose payment seems to be due. {@link beginPayment}
 * decides. Balances are polled, so no search waits for this.
 * @returns also the organization after which the next page begins: empty after the last page.
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
  const page = rows.map((row) => lowRow.parse(row));
  return {
    organizationIds: page.filter(({ isDue }) => isDue).map(({ organizationId }) => organizationId),
    after: page.length === limit ? (page.at(-1)?.organizationId ?? "") : "",
  };
}

const begunRow = rowOf({ customerId: z.string(), paymentMethodId: z.string(), mils: z.number(), askedAt: z.date() });

/** Writes the row of a payment, if one is due. @returns it, claimed by this process; undefined if none is due. */
export async function beginPayment(database: Querying, organizationId: string): Promise<ClaimedPayment | undefined> {
  const paymentId = newId("pay");
  const values = [organizationId, paymentId, claimSeconds];
  const { rows } = await database.query("select * from begin_auto_topup($1, $2, $3)", values);
  return rows[0] && { paymentId, organizationId, ...begunRow.parse(rows[0]), attempts: 1, mayCharge: true };
}

/** Claims open payments whose time has come: the process before died, or Stripe gave no answer. */
export async function claimPayments(database: Querying, limit: number): Promise<ClaimedPayment[]> {
  const { rows } = await database.query({
    name: "claim_auto_topups",
    text: "select c.id as payment_id, c.* from claim_auto_topups($1, $2) c",
    values: [limit, claimSeconds],
  });
  return rows.map((row) => claimedRow.parse(row));
}

/**
 * Sets when a payment without an answer is looked at again. @returns false if that is not for this attempt to say: another process
 * has the payment, or the payer has changed the settings meanwhile.
 */
export async function postponePayment(
  database: Querying,
  { paymentId, attempts }: ClaimedPayment,
  pauseSeconds: number,
): Promise<boolean> {
  const values = [paymentId, attempts, pauseSeconds, claimSeconds];
  const { rows } = await database.query("select postpone_auto_topup($1, $2, $3, $4) as postponed", values);
  return valueOf(z.boolean(), rows[0]);
}

const listedRow = rowOf({
  paymentId: z.string(),
  mils: z.number(),
  askedAt: z.date(),
  state: z.string(),
  attempts: z.number(),
  customerId: z.string().nullable(),
  paymentMethodId: z.string().nullable(),
  paymentIntentId: z.string().nullable(),
  failure: z.string().nullable(),
  endedAt: z.date().nullable(),
});
/** A payment as the operator's command has it. */
export type ListedPayment = z.infer<typeof listedRow>;

/** Lists the newest payments of an organization, the newest first. */
export async function listPayments(
  database: Querying,
  organizationId: string,
  limit: number,
): Promise<ListedPayment[]> {
  const { rows } = await database.query(
    "select id as payment_id, * from auto_topup_payments where organization_id = $1 order by id desc limit $2",
    [organizationId, limit],
  );
  return rows.map((row) => listedRow.parse(row));
}

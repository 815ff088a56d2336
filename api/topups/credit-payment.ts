import { z } from "zod";
import { type Actor, recordAudit } from "../../shared/audit/audit.ts";
import { idForm } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { Context } from "../../shared/process/context.ts";
import { creditRefusal } from "../../shared/credits/ledger.ts";
import { rowOf } from "../../shared/database/row.ts";
import { inTransaction, type Querying } from "../../shared/database/transaction.ts";
import { readGrantMils } from "../ledger/ledger-pages.ts";
import { isErased, publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";

/** What payments through Stripe have in common, whether a person paid on its page or a saved card was charged. */

export const milsPerCent = 10;

/** A time as Stripe has it: seconds since 1970, before the year 10000. */
export const unixSeconds = z.int().min(0).max(253_402_300_799);

const organizationKey = "serpmill_organization";

/** The metadata that marks an object at Stripe as ours: an operator's Stripe account may have others. */
export function ownerMetadata(organizationId: string): Record<string, string> {
  return { [organizationKey]: organizationId };
}

const ownObject = z.object({ metadata: z.object({ [organizationKey]: z.string().regex(idForm("org")) }) });

/** The organization in the metadata of an object from Stripe, or undefined if the object is not ours. */
export function organizationOf(object: unknown): string | undefined {
  return ownObject.safeParse(object).data?.metadata[organizationKey];
}

/**
 * The outcome of a payment; each is a label of the metric `topups_total`. The id of the grant is that of the payment at Stripe.
 * - `credited`: added now; `repeated`: added before.
 * - `foreign`: not ours; `unpaid`: not paid yet; `refunded`: paid back at Stripe before it was credited.
 * - `unknown_organization`, `unusable`: paid but not credited. The operator has to look at these.
 */
export type PaymentOutcome =
  | { outcome: "credited" | "repeated"; organizationId: string; grantId: string; mils: number; topup: Topup }
  | { outcome: "foreign" | "unpaid" | "refunded" }
  | { outcome: "unknown_organization" | "unusable"; grantId: string | undefined; reason?: string };

/** Who brings a payment: Stripe by an event in a request, the service that charged a card, or an operator by a command. */
interface Bringer {
  actor: Actor;
  requestId?: string;
  /** Whether a payment was refunded in full since, where the object does not say so. */
  isRefunded?: (grantId: string) => Promise<boolean>;
}

/** A payment that Stripe says is paid. */
interface PaidPayment {
  organizationId: string;
  grantId: string;
  mils: number;
  /** Runs in the transaction that adds the credit, also if it was added before. */
  record?: (transaction: Querying) => Promise<void>;
}

/** Reads an object of Stripe: what was paid to us with it, or why there is nothing to credit. */
type ReadPaid = (object: unknown, log: Log) => PaidPayment | PaymentOutcome;

/** Makes a function that credits an object if it is ours and paid. It must come from Stripe itself: nothing is verified here. */
export const crediting =
  (read: ReadPaid) =>
  async (
    context: Pick<Context, "database" | "log" | "metrics">,
    object: unknown,
    bringer: Bringer,
  ): Promise<PaymentOutcome> => {
    const paid = read(object, context.log);
    const outcome = "outcome" in paid ? paid : await creditPayment(context, paid, bringer);
    reportPayment(context, outcome, organizationOf(object));
    return outcome;
  };

/**
 * Adds the credit and its entry in the audit trail in one transaction. A payment that was credited before has its entry, except for
 * the plan that it changes if an operator credited it.
 */
async function creditPayment(
  { database, log }: Pick<Context, "database" | "log">,
  { record, ...paid }: PaidPayment,
  { actor, requestId, isRefunded }: Bringer,
): Promise<PaymentOutcome> {
  const { organizationId, grantId, mils } = paid;
  if (await isRefunded?.(grantId)) return { outcome: "refunded" };
  const credited = inTransaction(database, async (transaction) => {
    const isGone = await isErased(transaction, organizationId);
    // The operator has to pay it back at Stripe, unless it was credited before.
    if (isGone && (await readGrantMils(transaction, "grant", grantId)) === undefined) return undefined;
    const topup = await topUp(transaction, paid);
    if (topup && !isGone) await record?.(transaction);
    if (!topup?.fresh && !topup?.planChanged) return topup;
    const { fresh, balanceMils, planChanged } = topup;
    await recordAudit(transaction, {
      actor,
      action: "credit.topped_up",
      organizationId,
      subject: grantId,
      before: { balanceMils: balanceMils - (fresh ? mils : 0), ...(planChanged && { plan: "free" }) },
      after: { balanceMils, ...(planChanged && { plan: "payg" }) },
      requestId,
    });
    return topup;
  });
  const topup = await credited.catch(grantRefusalOrThrow);
  if (typeof topup === "string") return { outcome: "unusable", grantId, reason: topup };
  if (!topup) return { outcome: "unknown_organization", grantId };
  if (!topup.fresh) await warnOfAnotherAmount({ database, log }, paid);
  return { outcome: topup.fresh ? "credited" : "repeated", organizationId, grantId, mils, topup };
}

/** The first grant under an id counts. An operator who made it by hand may have mistaken the amount. */
async function warnOfAnotherAmount(
  { database, log }: Pick<Context, "database" | "log">,
  { organizationId, grantId, mils }: PaidPayment,
): Promise<void> {
  const creditedMils = await readGrantMils(database, "grant", grantId);
  if (creditedMils === mils) return;
  log.warn({ organizationId, grantId, mils, creditedMils }, "a payment was credited before with another amount");
}

/** The ledger's reason for refusing a grant. It belongs to this payment alone, so the others go on. Throws other errors. */
function grantRefusalOrThrow(error: unknown): string {
  const refusal = creditRefusal("grant", error);
  if (refusal === undefined) throw error;
  return refusal;
}

/** Counts an outcome, and logs credit and what could not be credited. */
function reportPayment(
  { log, metrics }: Pick<Context, "log" | "metrics">,
  outcome: PaymentOutcome,
  organizationId: string | undefined,
): void {
  metrics.topups.inc({ outcome: outcome.outcome });
  if (outcome.outcome === "credited") {
    const { topup, ...logFields } = outcome;
    metrics.topupMils.inc(outcome.mils);
    log.info({ ...logFields, planChanged: topup.planChanged }, "top-up credited");
  }
  if ("grantId" in outcome && !("topup" in outcome)) {
    log.error({ ...outcome, organizationId }, "a paid top-up could not be credited");
  }
}

const topupRow = rowOf({ fresh: z.boolean(), planChanged: z.boolean(), balanceMils: z.number(), version: z.number() });

/** A balance after a top-up: `fresh` if this call added the credit, `planChanged` if it also changed `free` to `payg`. */
type Topup = z.infer<typeof topupRow>;

/**
 * Adds credit that was paid for. A top-up counts once, however often it is sent with the same id. An organization's first
 * one changes its plan from `free` to `payg` in the same transaction.
 * @returns undefined if the organization does not exist.
 */
export async function topUp(
  database: Querying,
  paid: { organizationId: string; grantId: string; mils: number },
): Promise<Topup | undefined> {
  const values = [paid.organizationId, paid.grantId, paid.mils];
  const { rows } = await database.query("select * from topup($1, $2, $3)", values);
  return rows[0] && topupRow.parse(rows[0]);
}

/** Stores the new balance in Redis and announces a new plan to every API. Without this, both are picked up later. */
export async function publishTopup(
  { redis, log }: Pick<Context, "redis" | "log">,
  outcome: PaymentOutcome,
): Promise<void> {
  if (!("topup" in outcome)) return;
  const { organizationId, topup } = outcome;
  await storeBalance(redis, organizationId, topup)
    .then(() => (topup.planChanged ? publishIdentityChange(redis) : undefined))
    .catch((error: unknown) => log.warn({ err: error, organizationId }, "a top-up is not yet in Redis"));
}

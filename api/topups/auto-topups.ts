import type { Stripe } from "stripe";
import type { Actor } from "../../shared/audit/audit.ts";
import { pauseAfter } from "../../shared/concurrency/retry.ts";
import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import type { Context } from "../../shared/process/context.ts";
import { type Failure, pauseUnanswered, recordCancelled, recordFailure } from "../auto-topups/payment-failures.ts";
import {
  beginPayment,
  type ClaimedPayment,
  claimPayments,
  findLowBalances,
  postponePayment,
} from "../auto-topups/payments.ts";
import { claimDeletions, recordDeletion } from "../auto-topups/stripe-deletions.ts";
import { chargeCard, findCharge } from "./charge-card.ts";
import { publishTopup } from "./credit-payment.ts";
import { creditPaymentIntent } from "./credit-payment-intent.ts";
import { beginCard, type CardHolder, saveCardOfSession } from "./save-card.ts";
import { openStripe, stripeErrorFields } from "./stripe.ts";

/**
 * Automatic top-ups: each API polls for balances below their threshold and charges the saved card. There is no leader: Postgres
 * decides which process has a payment, so several APIs share the work.
 *
 * | the process dies | then |
 * | --- | --- |
 * | before the row of a payment is written | nothing was begun |
 * | after that, until Stripe's answer is read | the claim expires; the next process looks for the payment at Stripe, and charges only if there is none |
 * | after the answer | the same; and Stripe's webhook credits what was paid |
 * | after the credit | the payment is `paid` in the same transaction; Redis gets the balance later |
 */

const pauseMs = 1_000;
const settingsPerRun = 5_000;
/** Payments spend nearly all of their time waiting for Stripe. */
const paymentsMax = 10;
/** New payments leave a slot for open ones that are due: for those, the payer may have paid already. */
const newPaymentsMax = paymentsMax - 1;

/** Without an answer a payment is looked at again after 2 min, then as {@link pauseAfter} says. */
const firstPauseSeconds = 120;
/** Until an operator has mended what keeps a payment from being credited. */
const uncreditedPauseSeconds = 6 * 3_600;
/** The last one about 10 hours after the first. From then on Stripe is only asked what became of the payment. */
const chargesMax = 7;
/** Stripe keeps an Idempotency-Key for at least 24 hours. Later the same key would be a new payment. */
const chargeHoursMax = 20;

const deletionPauseMs = 5_000;
const deletionsPerRun = 5;

const actor: Actor = { kind: "service", name: "auto-topups" };

/** Automatic top-ups: a saved card that is charged while the balance is low. */
export interface AutoTopups {
  /**
   * Begins to save a card. Stripe sends the browser back to `returnPath`.
   * @returns the page of Stripe where the person enters the card. @throws {CallerError} as {@link beginCard}.
   */
  beginCard: (holder: Omit<CardHolder, "returnUrl"> & { returnPath: string }) => Promise<{ url: string }>;
  /** Saves the card of a session that Stripe completed. @throws {CallerError} as {@link saveCardOfSession}. */
  saveCard: (session: unknown, event: { eventId: string; requestId: string }) => Promise<string>;
}

/** Opens automatic top-ups and starts their work in the background; undefined if the operator has set no Stripe key. */
export async function openAutoTopups(context: Context): Promise<AutoTopups | undefined> {
  const { PUBLIC_URL: publicUrl } = context.config;
  const stripe = await openStripe(context.config);
  if (!stripe || !publicUrl) return undefined;
  startAutoTopups(context, stripe);
  startStripeDeletions(context, stripe);
  return {
    beginCard: ({ returnPath, ...holder }) =>
      beginCard(context, stripe, { ...holder, returnUrl: publicUrl + returnPath }),
    saveCard: (session, event) => saveCardOfSession(context, stripe, session, event),
  };
}

type AutoTopupContext = Pick<Context, "config" | "database" | "redis" | "log" | "metrics" | "shutdown">;

/** Charges cards until the process stops, which waits for the payments under way. */
function startAutoTopups(context: AutoTopupContext, stripe: Stripe): void {
  const { database, log, metrics, shutdown } = context;
  const running = new Set<Promise<void>>();
  let after = "";
  shutdown.register("payments of automatic top-ups", () => Promise.all(running));

  const start = (payment: ClaimedPayment) => {
    const { organizationId, paymentId } = payment;
    const work = makePayment(context, stripe, payment)
      // The payment is looked at again once its claim has ended.
      .catch((error: unknown) => log.warn({ err: error, organizationId, paymentId }, "a payment was not recorded"))
      .finally(() => running.delete(work));
    running.add(work);
  };
  const run = async () => {
    for (const payment of await claimPayments(database, paymentsMax - running.size)) start(payment);
    const page = await findLowBalances(database, { after, limit: settingsPerRun });
    for (const organizationId of page.organizationIds) {
      // The next run begins here, and not at the start of the page: payers who are soon due again must not keep others waiting.
      if (running.size >= newPaymentsMax) return;
      after = organizationId;
      const payment = await beginPayment(database, organizationId);
      if (!payment) continue;
      metrics.autoTopups.inc({ outcome: "begun" });
      log.info({ organizationId, paymentId: payment.paymentId, mils: payment.mils }, "automatic top-up begun");
      start(payment);
    }
    after = page.after;
  };
  runPeriodically({ name: "auto top-ups", pauseMs, run, log, metrics, shutdown });
}

/** Makes one attempt at a payment. A first one charges the card at once; a later one asks first whether it was charged. */
async function makePayment(context: AutoTopupContext, stripe: Stripe, payment: ClaimedPayment): Promise<void> {
  const { database, metrics } = context;
  const found = payment.attempts === 1 ? { answer: "absent" as const } : await findCharge(stripe, payment);
  const isAbsent = found.answer === "absent";
  // An open payment blocks the next one, so what Stripe does not have and we no longer charge must end.
  if (isAbsent && !(payment.mayCharge && isChargeable(payment))) {
    metrics.autoTopups.inc({ outcome: "cancelled" });
    return recordCancelled(database, payment);
  }
  const answer = isAbsent ? await chargeCard(stripe, payment) : found;
  switch (answer.answer) {
    case "paid":
      return credit(context, answer.intent, payment);
    case "declined":
      return decline(context, payment, answer);
    case "unknown":
      return leaveOpen(context, payment, answer.logFields);
  }
}

function isChargeable({ attempts, askedAt }: ClaimedPayment): boolean {
  return attempts <= chargesMax && Date.now() - askedAt.getTime() < chargeHoursMax * 3_600_000;
}

async function credit(context: AutoTopupContext, intent: unknown, payment: ClaimedPayment): Promise<void> {
  const outcome = await creditPaymentIntent(context, intent, { actor });
  if (!("topup" in outcome)) {
    // It was logged as an error, and the operator mends it: the payment stays open, and is tried again.
    await postponePayment(context.database, payment, uncreditedPauseSeconds);
    return;
  }
  context.metrics.autoTopups.inc({ outcome: "paid" });
  await publishTopup(context, outcome);
}

async function decline(context: AutoTopupContext, payment: ClaimedPayment, failure: Failure): Promise<void> {
  const { config, database, log, metrics } = context;
  const { organizationId, paymentId } = payment;
  const recorded = await recordFailure(database, payment, { failure, topupUrl: config.TOPUP_URL });
  if (!recorded) return;
  const { reason, paymentIntentId } = failure;
  // Stripe refuses what an operator or a bug did wrong; the rest is between the payer and the bank.
  const isRefused = reason === "refused";
  metrics.autoTopups.inc({ outcome: isRefused ? "refused" : "declined" });
  const level = isRefused ? "error" : "info";
  log[level]({ organizationId, paymentId, reason, paymentIntentId, ...recorded }, "automatic top-up was declined");
  if (recorded.isPaused) metrics.autoTopups.inc({ outcome: "paused" });
}

async function leaveOpen(context: AutoTopupContext, payment: ClaimedPayment, logFields: object): Promise<void> {
  const { config, database, log, metrics } = context;
  const { organizationId, paymentId, attempts } = payment;
  metrics.autoTopups.inc({ outcome: "unanswered" });
  log.warn({ organizationId, paymentId, attempts, ...logFields }, "Stripe did not say whether a card was charged");
  const isPostponed = await postponePayment(database, payment, pauseAfter(attempts, firstPauseSeconds));
  if (!isPostponed || attempts < chargesMax) return;
  if (!(await pauseUnanswered(database, payment, config.TOPUP_URL))) return;
  metrics.autoTopups.inc({ outcome: "paused" });
  log.error(
    { organizationId, paymentId, attempts },
    "automatic top-ups are paused: Stripe gave no answer in all attempts",
  );
}

/** Has Stripe delete the cards and customers that payers and operators removed here. */
function startStripeDeletions(
  { database, log, metrics, shutdown }: Pick<Context, "database" | "log" | "metrics" | "shutdown">,
  stripe: Stripe,
): void {
  const run = async () => {
    for (const { stripeId, attempts, isLast } of await claimDeletions(database, deletionsPerRun)) {
      const failed = await deleteAtStripe(stripe, stripeId);
      if (!failed) await recordDeletion(database, stripeId);
      else if (isLast)
        log.error({ stripeId, attempts, ...failed }, "Stripe did not delete this in all attempts: delete it there");
      else log.warn({ stripeId, attempts, ...failed }, "Stripe did not delete this yet");
    }
  };
  runPeriodically({ name: "stripe deletions", pauseMs: deletionPauseMs, run, log, metrics, shutdown });
}

/** @returns the fields of the error that may be logged; undefined if it is gone at Stripe. */
async function deleteAtStripe(stripe: Stripe, stripeId: string) {
  try {
    if (stripeId.startsWith("cus_")) await stripe.customers.del(stripeId);
    else await stripe.paymentMethods.detach(stripeId);
    return undefined;
  } catch (error) {
    const fields = stripeErrorFields(error);
    // It is not there any more, or is not attached to a customer and so cannot be charged.
    return fields.statusCode === 404 || fields.statusCode === 400 ? undefined : fields;
  }
}

import type { Command } from "commander";
import { creditPaymentIntent, paymentIdOf } from "../api/auto-topups/credit-payment-intent.ts";
import { creditCheckoutSession } from "../api/topups/checkout.ts";
import type { PaymentOutcome } from "../api/topups/credit-payment.ts";
import { openStripe, stripeErrorFields } from "../api/topups/stripe.ts";
import { parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { exitCodes } from "./terminal.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

// Bank debits are paid days after their session began, and Stripe retries its events for three days.
const daysDefault = 14;
const daysMax = 90;
const secondsPerDay = 86_400;
const listedPerPage = 100;
// A session's payment says whether it was refunded. Stripe may need longer for pages with payments.
const expandPayment = ["data.payment_intent.latest_charge"];
const expandCharge = ["data.latest_charge"];
const pageTimeoutMs = 20_000;

/** @param credit the parent command. */
export function addTopupCommands(credit: Command, run: RunCommand): void {
  credit
    .command("topups-check")
    .description(
      "credit recent top-ups that were paid at Stripe, not refunded there, and are missing here; exit 1 if one cannot be credited",
    )
    .option("--days <n>", "how many days back", parseWholeNumber(1, daysMax), daysDefault)
    .action(({ days }: { days: number }) =>
      run((context) => checkTopups(context, days), {
        exitCode: ({ notCredited }) => (notCredited > 0 ? exitCodes.refused : 0),
      }),
    );
}

/**
 * Credits every completed session that Stripe lists, and every payment of an automatic top-up, unless it was credited before or
 * refunded since.
 */
async function checkTopups(context: CommandContext, days: number) {
  const stripe = await openStripe(context.config);
  if (!stripe) throw new CommandRefused("STRIPE_SECRET_KEY is not set, so there are no top-ups to check.");
  const since = Math.floor(Date.now() / 1_000) - days * secondsPerDay;
  const counts = {
    sessions: 0,
    automatic: 0,
    credited: 0,
    creditedMils: 0,
    repeated: 0,
    refunded: 0,
    unpaid: 0,
    foreign: 0,
    notCredited: 0,
  };
  const count = async (outcome: PaymentOutcome) => {
    if (outcome.outcome === "unknown_organization" || outcome.outcome === "unusable") counts.notCredited += 1;
    else counts[outcome.outcome] += 1;
    if (outcome.outcome === "credited") {
      counts.creditedMils += outcome.mils;
      await announce(context, outcome);
    }
  };
  const sessions = stripe.checkout.sessions.list(
    { created: { gte: since }, status: "complete", limit: listedPerPage, expand: expandPayment },
    { timeout: pageTimeoutMs },
  );
  for await (const session of orRefused(sessions)) {
    // A card was saved in it, and nothing paid.
    if (session.mode === "setup") continue;
    counts.sessions += 1;
    await count(await creditCheckoutSession(context, session, context));
  }
  const intents = stripe.paymentIntents.list(
    { created: { gte: since }, limit: listedPerPage, expand: expandCharge },
    { timeout: pageTimeoutMs },
  );
  for await (const intent of orRefused(intents)) {
    // Those of sessions were credited with them, and an operator's Stripe account may have others.
    if (paymentIdOf(intent) === undefined) continue;
    counts.automatic += 1;
    await count(await creditPaymentIntent(context, intent, context));
  }
  return { days, ...counts };
}

/** @throws {CommandRefused} if Stripe is down or refuses, with the fields of its error that may be shown. */
async function* orRefused<Listed>(list: AsyncIterable<Listed>): AsyncGenerator<Listed> {
  try {
    yield* list;
  } catch (error) {
    throw new CommandRefused(
      `Stripe did not list its payments: ${JSON.stringify(stripeErrorFields(error))}. Try again later.`,
    );
  }
}

async function announce(
  context: CommandContext,
  { organizationId, topup }: Extract<PaymentOutcome, { topup: unknown }>,
): Promise<void> {
  await announceBalance(context, organizationId, topup.balance);
  if (topup.planChanged) await announceIdentityChange(context);
}

import type { Command } from "commander";
import type { Stripe } from "stripe";
import type { Context } from "../context.ts";
import { creditCheckoutSession, type CheckoutOutcome } from "../topups/checkout.ts";
import { openStripe, stripeErrorFields } from "../topups/stripe.ts";
import { parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import { runCommand } from "./run-command.ts";

// Bank debits are paid days after their session was begun; Stripe tells a payment for three days.
const daysUsual = 14;
const daysMax = 90;
const secondsPerDay = 86_400;
const sessionsPerPage = 100;
// A session's own payment tells whether it was given back. With it, Stripe may need longer for a page.
const withPayment = ["data.payment_intent.latest_charge"];
const pageMsMax = 20_000;

/** @param credit the command whose part this is */
export function addTopupCommands(credit: Command): void {
  credit
    .command("topups-check")
    .description(
      "credit every top-up of the last days that was paid at Stripe, not paid back, and is missing here; exit 1 where one cannot be",
    )
    .option("--days <n>", "how far back", parseWholeNumber(1, daysMax), daysUsual)
    .action(({ days }: { days: number }) => runCommand((context) => check(context, days)));
}

/** Brings every session here that Stripe has. Those that were credited before, or paid back since, stay as they are. */
async function check(context: Context, days: number) {
  const stripe = await openStripe(context.config);
  if (!stripe) throw new CommandRefused("STRIPE_SECRET_KEY is not set: there are no top-ups to check.");
  const since = Math.floor(Date.now() / 1_000) - days * secondsPerDay;
  const found = {
    sessions: 0,
    credited: 0,
    creditedMils: 0,
    repeated: 0,
    refunded: 0,
    unpaid: 0,
    foreign: 0,
    notCredited: 0,
  };
  for await (const session of completedSince(stripe, since)) {
    const outcome = await creditCheckoutSession(context, session);
    found.sessions += 1;
    if (outcome.outcome === "unknown_organization" || outcome.outcome === "unusable") found.notCredited += 1;
    else found[outcome.outcome] += 1;
    if (outcome.outcome === "credited") {
      found.creditedMils += outcome.mils;
      await tell(context, outcome);
    }
  }
  if (found.notCredited > 0) process.exitCode = 1;
  return { days, ...found };
}

/** @throws {CommandRefused} with what may be told, where Stripe is away or refuses. */
async function* completedSince(stripe: Stripe, since: number) {
  try {
    yield* stripe.checkout.sessions.list(
      { created: { gte: since }, status: "complete", limit: sessionsPerPage, expand: withPayment },
      { timeout: pageMsMax },
    );
  } catch (error) {
    throw new CommandRefused(
      `Stripe did not tell its sessions: ${JSON.stringify(stripeErrorFields(error))}. Run it again later.`,
    );
  }
}

async function tell(
  context: Context,
  { organizationId, topup }: Extract<CheckoutOutcome, { topup: unknown }>,
): Promise<void> {
  await announceBalance(context.redis, organizationId, topup.balance);
  if (topup.planChanged) await announceIdentityChange(context.redis);
}

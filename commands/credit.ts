import type { Command } from "commander";
import { type Actor, recordAudit } from "../shared/audit/audit.ts";
import { ConfigError } from "../shared/config.ts";
import { type BalanceChange, correctCredit, creditRefusal, grantCredit } from "../shared/credits/ledger.ts";
import { inTransaction, type Querying } from "../shared/database/transaction.ts";
import { sqlStateOf } from "../shared/database/transient-errors.ts";
import { newId } from "../shared/ids.ts";
import { showOrganization } from "../shared/organizations/organizations.ts";
import { readGrantMils } from "../api/ledger/ledger-pages.ts";
import { creditPaymentIntent, paymentIdOf } from "../api/topups/credit-payment-intent.ts";
import { creditCheckoutSession, openStripe, stripeErrorFields } from "../api/topups/stripe.ts";
import type { PaymentOutcome } from "../api/topups/credit-payment.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { parseMils } from "./money.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import { CommandRefused, refuseErased, refuseUnknown } from "./refusals.ts";
import { type CommandContext, exitCodes, type RunCommand } from "./run-command.ts";

const noteLengthMax = 500;
// Bank debits are paid days after their session began, and Stripe retries its events for three days.
const daysDefault = 14;
const daysMax = 90;
const secondsPerDay = 86_400;
const listedPerPage = 100;
// A session's payment says whether it was refunded. Stripe may need longer for pages with payments.
const expandPayment = ["data.payment_intent.latest_charge"];
const expandCharge = ["data.latest_charge"];
const pageTimeoutMs = 20_000;

interface ChangeOptions {
  id?: string;
  reason: string;
}

export function addCreditCommands(program: Command, run: RunCommand): void {
  const credit = program
    .command("credit")
    .description("credit of organizations, in mils (1 mil = 1/1000 USD), or in dollars with --usd");
  credit
    .command("grant")
    .description("add credit to an organization")
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<mils>", "the amount", parseMils(program, 1))
    .option("--id <grant>", "an id of your choice; repeats under it count once", parseText(noteLengthMax))
    .option("--reason <text>", "a note for the ledger", parseText(noteLengthMax), "operator")
    .action((orgId: string, mils: number, { id: grantId = newId("grant"), reason }: ChangeOptions) =>
      run(async (context) => {
        const wanted = { organizationId: orgId, grantId, mils, reason };
        const { mils: grantedMils, ...changed } = await changeBalance(context, "grant", wanted);
        return { orgId, grantId, grantedMils, ...changed };
      }),
    );
  credit
    .command("correct")
    .summary("correct an organization's balance, up or down")
    .description(
      "Correct an organization's balance: a positive amount adds credit, a negative one takes it away, never below 0. A correction does not count as spending. Searches that are running may then fail for lack of credit.",
    )
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<mils>", "the amount, such as 500 or -500", parseMils(program, -Number.MAX_SAFE_INTEGER))
    .requiredOption("--reason <text>", "the reason, for the ledger and the account's history", parseText(noteLengthMax))
    .option("--id <correction>", "an id of your choice; repeats under it count once", parseText(noteLengthMax))
    .action((orgId: string, mils: number, { id = newId("correction"), reason }: ChangeOptions, command: Command) => {
      if (mils === 0) command.error("error: the amount is 0");
      return run(async (context) => {
        const wanted = { organizationId: orgId, grantId: id, mils, reason };
        const { mils: correctedMils, ...changed } = await changeBalance(context, "correction", wanted);
        return { orgId, correctionId: id, correctedMils, ...changed };
      });
    });
  credit
    .command("topups-check")
    .description(
      "credit recent top-ups that were paid at Stripe and are missing here, except refunded ones; exit 1 if one cannot be credited",
    )
    .option("--days <n>", "how many days back", parseWholeNumber(1, daysMax), daysDefault)
    .action(({ days }: { days: number }) =>
      run((context) => checkTopups(context, days), {
        exitCode: ({ notCredited }) => (notCredited > 0 ? exitCodes.refused : 0),
      }),
    );
}

const kinds = {
  grant: { apply: grantCredit, action: "credit.granted" },
  correction: { apply: correctCredit, action: "credit.corrected" },
} as const;
type ChangeKind = keyof typeof kinds;

async function changeBalance(context: CommandContext, kind: ChangeKind, wanted: BalanceChange) {
  const changed = await inTransaction(context.database, (transaction) =>
    changeRecorded(transaction, context.actor, kind, wanted),
  );
  await announceBalance(context, wanted.organizationId, changed);
  return { mils: changed.fresh ? wanted.mils : 0, balanceMils: changed.balanceMils, repeated: !changed.fresh };
}

/**
 * Changes a balance with its entry in the audit trail. The reason is in the ledger alone.
 * @throws {CommandRefused} if the organization is unknown or erased, if the ledger refuses the change, or if the id was used for
 * another one.
 */
export async function changeRecorded(transaction: Querying, actor: Actor, kind: ChangeKind, wanted: BalanceChange) {
  const { apply, action } = kinds[kind];
  const { organizationId, grantId, mils } = wanted;
  await refuseErased(transaction, organizationId);
  const former = await showOrganization(transaction, organizationId);
  if (!former) refuseUnknown(organizationId);
  const changed = await apply(transaction, wanted).catch((error: unknown) => {
    const refusal = creditRefusal(kind, error);
    if (refusal === undefined) throw error;
    throw new CommandRefused(
      sqlStateOf(error) === "23514" ? `${refusal} The balance is ${former.balanceMils} mils.` : refusal,
    );
  });
  if (!changed) refuseUnknown(organizationId);
  const { fresh, balanceMils } = changed;
  if (!fresh) await refuseAnotherAmount(transaction, kind, wanted);
  const values = { before: { balanceMils: fresh ? balanceMils - mils : balanceMils }, after: { balanceMils } };
  await recordAudit(transaction, { actor, action, organizationId, subject: grantId, ...values });
  return changed;
}

/** A repeat with another amount is a mistake: one of two payments would go unnoticed. */
async function refuseAnotherAmount(transaction: Querying, kind: ChangeKind, { grantId, mils }: BalanceChange) {
  const usedMils = await readGrantMils(transaction, kind, grantId);
  if (usedMils === mils) return;
  throw new CommandRefused(
    `This ${kind} id belongs to an earlier ${kind} of ${usedMils} mils, not ${mils} mils. Nothing was changed. If this is another ${kind}, choose another id.`,
  );
}

/**
 * Credits every completed session that Stripe lists, and every payment of an automatic top-up, unless it was credited before or
 * refunded since.
 */
async function checkTopups(context: CommandContext, days: number) {
  const stripe = await openStripe(context.config);
  if (!stripe) throw new ConfigError(["STRIPE_SECRET_KEY: required to check top-ups"]);
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
    if (!("topup" in outcome)) return;
    const { organizationId, mils, topup } = outcome;
    // An operator may have credited it by its id, which changes no plan.
    if (topup.planChanged) await announceIdentityChange(context);
    if (!topup.fresh) return;
    counts.creditedMils += mils;
    await announceBalance(context, organizationId, topup);
  };
  const recent = { created: { gte: since }, limit: listedPerPage };
  const completed = { ...recent, status: "complete", expand: expandPayment } as const;
  const sessions = stripe.checkout.sessions.list(completed, { timeout: pageTimeoutMs });
  for await (const session of orRefused(sessions)) {
    // A card was saved in it, and nothing paid.
    if (session.mode === "setup") continue;
    counts.sessions += 1;
    await count(await creditCheckoutSession(context, session, context));
  }
  const intents = stripe.paymentIntents.list({ ...recent, expand: expandCharge }, { timeout: pageTimeoutMs });
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

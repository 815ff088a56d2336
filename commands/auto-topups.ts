import { type Command, Option } from "commander";
import { inTransaction } from "../shared/database/transaction.ts";
import { switchOff, type SwitchOffReason, switchOffReasons } from "../api/auto-topups/audited-changes.ts";
import { type AutoTopup, readAutoTopup } from "../api/auto-topups/auto-topup.ts";
import { type ListedPayment, listPayments } from "../api/auto-topups/payments.ts";
import { parseId, parseWholeNumber } from "./argument-parsers.ts";
import type { FormatResult } from "./format-result.ts";
import { requireOrganization } from "./refusals.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const paymentsDefault = 20;
const paymentsMax = 10_000;

export function addAutoTopupCommands(program: Command, run: RunCommand): void {
  const autoTopup = program
    .command("auto-topup")
    .description("automatic top-ups: charges to an organization's saved card when its balance is low");
  autoTopup
    .command("show")
    .description("show an organization's automatic top-up, its card, and its newest payments, newest first")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--limit <n>", "how many payments at most", parseWholeNumber(1, paymentsMax), paymentsDefault)
    .action((orgId: string, { limit }: { limit: number }) => run((context) => show(context, orgId, limit), { toText }));
  autoTopup
    .command("off")
    .summary("switch off an organization's automatic top-up")
    .description(
      "Switch off an organization's automatic top-up. Card and terms stay, and the payer can switch it on again. A payment that Stripe already has is still credited.",
    )
    .argument("<org>", "the organization's id", parseId("org"))
    .addOption(
      new Option("--reason <reason>", "the reason, for the audit trail")
        .choices(switchOffReasons)
        .makeOptionMandatory(),
    )
    .action((orgId: string, { reason }: { reason: SwitchOffReason }) => run((context) => off(context, orgId, reason)));
}

async function show({ database }: CommandContext, organizationId: string, limit: number) {
  await requireOrganization(database, organizationId);
  const known = await readAutoTopup(database, organizationId);
  const payments = await listPayments(database, organizationId, limit);
  return {
    orgId: organizationId,
    state: stateOf(known),
    pausedAt: known?.paused?.at ?? null,
    pauseReason: known?.paused?.reason ?? null,
    thresholdMils: known?.terms?.thresholdMils ?? null,
    amountMils: known?.terms?.amountMils ?? null,
    ceilingMils: known?.terms?.ceilingMils ?? null,
    monthMils: known?.monthMils ?? 0,
    customerId: known?.customerId ?? null,
    card: known?.card ?? null,
    payments,
  };
}

function stateOf(known: AutoTopup | undefined): "on" | "off" | "paused" {
  if (!known?.isOn) return "off";
  return known.paused ? "paused" : "on";
}

/** What is needed to find a payment at Stripe. */
function toText({ payments, ...settings }: { payments: ListedPayment[] }, format: FormatResult): string {
  const shown = payments.map(({ askedAt, mils, state, failure, paymentId, paymentIntentId }) => {
    return { askedAt, mils, state, failure, paymentId, paymentIntentId };
  });
  return format({ ...settings, payments: shown });
}

async function off({ database, actor }: CommandContext, organizationId: string, reason: SwitchOffReason) {
  await requireOrganization(database, organizationId);
  const switchedOff = await inTransaction(database, (transaction) =>
    switchOff(transaction, { actor, organizationId }, reason),
  );
  return { orgId: organizationId, switchedOff };
}

import type { Command } from "commander";
import { type Actor, recordAudit } from "../audit/audit.ts";
import { grantCredit, grantRefusal } from "../credits/ledger.ts";
import { readGrantMils } from "../credits/ledger-pages.ts";
import { inTransaction, type Querying } from "../database/transaction.ts";
import { newId } from "../ids.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceBalance } from "./publish-changes.ts";
import { refuseErased } from "./refuse-erased.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import { addTopupCommands } from "./topups.ts";

const noteLengthMax = 500;

interface GrantOptions {
  id?: string;
  reason: string;
}

export function addCreditCommands(program: Command, run: RunCommand): void {
  const credit = program.command("credit").description("credit of organizations, in mils (1 mil = 1/1000 USD)");
  credit
    .command("grant")
    .description("add credit to an organization")
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<mils>", "the amount", parseWholeNumber(1))
    .option("--id <grant>", "an id that you choose: repeated grants with it count once", parseText(noteLengthMax))
    .option("--reason <text>", "a note for the ledger", parseText(noteLengthMax), "operator")
    .action((orgId: string, mils: number, options: GrantOptions) =>
      run((context) => grant(context, orgId, mils, options)),
    );
  addTopupCommands(credit, run);
}

async function grant(context: CommandContext, organizationId: string, mils: number, options: GrantOptions) {
  const grantId = options.id ?? newId("grant");
  const wanted = { organizationId, grantId, mils, reason: options.reason };
  const granted = await inTransaction(context.database, (transaction) => addCredit(transaction, context.actor, wanted));
  await announceBalance(context, organizationId, granted);
  const { fresh, balanceMils } = granted;
  return { orgId: organizationId, grantId, grantedMils: fresh ? mils : 0, balanceMils, repeated: !fresh };
}

/**
 * Adds credit with its entry in the audit trail. The note is in the ledger alone.
 * @throws {CommandRefused} if the organization is unknown or erased, or the id was used for another grant.
 */
export async function addCredit(transaction: Querying, actor: Actor, wanted: Parameters<typeof grantCredit>[1]) {
  const { organizationId, grantId, mils } = wanted;
  await refuseErased(transaction, organizationId);
  const granted = await grantCredit(transaction, wanted).catch(refuseGrant);
  if (!granted) throw new CommandRefused(`There is no organization ${organizationId}.`);
  const { fresh, balanceMils } = granted;
  if (!fresh) await refuseAnotherAmount(transaction, wanted);
  const values = { before: { balanceMils: fresh ? balanceMils - mils : balanceMils }, after: { balanceMils } };
  await recordAudit(transaction, actor, { action: "credit.granted", organizationId, subject: grantId, ...values });
  return granted;
}

/** A repeat with another amount is a mistake: one of two payments would go unnoticed. */
async function refuseAnotherAmount(transaction: Querying, { grantId, mils }: { grantId: string; mils: number }) {
  const grantedMils = await readGrantMils(transaction, grantId);
  if (grantedMils === mils) return;
  throw new CommandRefused(
    `This grant id was used for a grant of ${grantedMils} mils before, not of ${mils}. Nothing was changed. Choose another id if this is another grant.`,
  );
}

function refuseGrant(error: unknown): never {
  const refusal = grantRefusal(error);
  throw refusal === undefined ? error : new CommandRefused(refusal);
}

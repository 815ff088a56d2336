import type { Command } from "commander";
import { z } from "zod";
import { type Actor, recordAudit } from "../shared/audit/audit.ts";
import { grantCredit, grantRefusal, type VersionedBalance } from "../shared/credits/ledger.ts";
import { readGrantMils } from "../api/ledger/ledger-pages.ts";
import { inTransaction, type Querying } from "../shared/database/transaction.ts";
import { newId } from "../shared/ids.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused, refuseErased } from "./command-refused.ts";
import { announceBalance } from "./publish-changes.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import { addTopupCommands } from "./topups.ts";
import { sqlStateOf } from "../shared/database/transient-errors.ts";

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
    .option("--id <grant>", "an id of your choice: repeated grants with it count once", parseText(noteLengthMax))
    .option("--reason <text>", "a note for the ledger", parseText(noteLengthMax), "operator")
    .action((orgId: string, mils: number, options: GrantOptions) =>
      run((context) => grant(context, orgId, mils, options)),
    );
  credit
    .command("correct")
    .summary("correct an organization's balance, up or down")
    .description(
      "Correct an organization's balance: a positive amount adds credit, a negative one takes it away, never below 0. A correction does not count as spending. If you take away credit that running searches need, they may be refused at their end.",
    )
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<mils>", "the amount, such as 500 or -500", parseWholeNumber(-Number.MAX_SAFE_INTEGER))
    .requiredOption("--reason <text>", "the reason, for the ledger and the account's history", parseText(noteLengthMax))
    .option("--id <correction>", "an id of your choice: repeats with it count once", parseText(noteLengthMax))
    .action((orgId: string, mils: number, options: GrantOptions, command: Command) => {
      if (mils === 0) command.error("error: the amount is 0");
      return run((context) => correct(context, orgId, mils, options));
    });
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
  const granted = await grantCredit(transaction, wanted).catch((error: unknown) => refuse(error, grantRefusal));
  if (!granted) throw new CommandRefused(`There is no organization ${organizationId}.`);
  const { fresh, balanceMils } = granted;
  if (!fresh) await refuseAnotherAmount(transaction, "grant", { id: grantId, mils });
  const values = { before: { balanceMils: fresh ? balanceMils - mils : balanceMils }, after: { balanceMils } };
  await recordAudit(transaction, actor, { action: "credit.granted", organizationId, subject: grantId, ...values });
  return granted;
}

async function correct(context: CommandContext, organizationId: string, mils: number, { id, reason }: GrantOptions) {
  const wanted = { organizationId, correctionId: id ?? newId("correction"), mils, reason };
  const corrected = await inTransaction(context.database, (transaction) =>
    correctRecorded(transaction, context.actor, wanted),
  );
  await announceBalance(context, organizationId, corrected);
  const { fresh, balanceMils } = corrected;
  const { correctionId } = wanted;
  return { orgId: organizationId, correctionId, correctedMils: fresh ? mils : 0, balanceMils, repeated: !fresh };
}

/** Corrects a balance with its entry in the audit trail. The reason is in the ledger alone. */
async function correctRecorded(transaction: Querying, actor: Actor, wanted: Correction) {
  const { organizationId, correctionId, mils } = wanted;
  await refuseErased(transaction, organizationId);
  const corrected = await correctCredit(transaction, wanted).catch((error: unknown) =>
    refuse(error, correctionRefusal),
  );
  if (!corrected) throw new CommandRefused(`There is no organization ${organizationId}.`);
  const { fresh, balanceMils } = corrected;
  if (!fresh) await refuseAnotherAmount(transaction, "correction", { id: correctionId, mils });
  const values = { before: { balanceMils: fresh ? balanceMils - mils : balanceMils }, after: { balanceMils } };
  const entry = { action: "credit.corrected", organizationId, subject: correctionId, ...values } as const;
  await recordAudit(transaction, actor, entry);
  return corrected;
}

/** A repeat with another amount is a mistake: one of two payments would go unnoticed. */
async function refuseAnotherAmount(
  transaction: Querying,
  kind: "grant" | "correction",
  { id, mils }: { id: string; mils: number },
) {
  const usedMils = await readGrantMils(transaction, kind, id);
  if (usedMils === mils) return;
  throw new CommandRefused(
    `This ${kind} id belongs to an earlier ${kind} of ${usedMils} mils, not ${mils}. Nothing was changed. If this is another ${kind}, choose another id.`,
  );
}

function refuse(error: unknown, explain: (error: unknown) => string | undefined): never {
  const refusal = explain(error);
  throw refusal === undefined ? error : new CommandRefused(refusal);
}

/** An entry of the ledger by which an operator adds credit or takes it away. It is no spending. */
export interface Correction {
  organizationId: string;
  /** A correction counts once, however often it is sent with the same id. */
  correctionId: string;
  /** Below 0 it takes credit away. Never 0. */
  mils: number;
  reason: string;
}

const correctedRow = z.object({ fresh: z.boolean(), balance_mils: z.number(), version: z.number() });

/**
 * Corrects a balance. Searches that run may then be refused at their end, which costs their callers nothing.
 * @returns undefined if the organization does not exist.
 * @throws what {@link correctionRefusal} explains, if the balance would fall below 0 or grow too large.
 */
export async function correctCredit(
  database: Querying,
  { organizationId, correctionId, mils, reason }: Correction,
): Promise<(VersionedBalance & { fresh: boolean }) | undefined> {
  const values = [organizationId, correctionId, mils, reason];
  const { rows } = await database.query("select * from correct_credit($1, $2, $3, $4)", values);
  if (!rows[0]) return undefined;
  const { fresh, balance_mils: balanceMils, version } = correctedRow.parse(rows[0]);
  return { fresh, balanceMils, version };
}

// By the SQLSTATEs of a violated check and a violated unique index.
const refusals: Record<string, string> = {
  "23514": `A balance is at least 0 and at most ${Number.MAX_SAFE_INTEGER} mils. Nothing was changed.`,
  "23505": "This correction id was used for another organization.",
};

/** Why the ledger refused a correction, as a sentence; undefined for any other error. */
export function correctionRefusal(error: unknown): string | undefined {
  return refusals[sqlStateOf(error) ?? ""];
}

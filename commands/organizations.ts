import type { Command } from "commander";
import { type Actor, recordAudit } from "../shared/audit/audit.ts";
import { inTransaction, type Querying } from "../shared/database/transaction.ts";
import { listPlans } from "../shared/credits/plans.ts";
import { readUnpaidCalls } from "../shared/credits/unpaid-calls.ts";
import { newId } from "../shared/ids.ts";
import {
  createOrganization,
  renameOrganization,
  setSuspended,
  showOrganization,
} from "../shared/organizations/organizations.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { addCredit } from "./credit.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import { refuseErased } from "./refuse-erased.ts";
import { issueRecorded } from "./tokens.ts";

const nameLengthMax = 200;

/** @returns the parent command of those about organizations. */
export function addOrganizationCommands(program: Command, run: RunCommand): Command {
  const org = program.command("org").description("organizations: the customers, with their credit and tokens");
  org
    .command("create")
    .description("create an organization and its first token, which is shown only once")
    .requiredOption("--name <name>", "its name", parseText(nameLengthMax))
    .requiredOption("--plan <code>", "its plan (see: plan list)")
    .option("--credit <mils>", "its initial credit, instead of the plan's starting grant", parseWholeNumber(0))
    .action((options: { name: string; plan: string; credit?: number }) => run((context) => create(context, options)));
  org
    .command("show")
    .description("show an organization")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => show(context, orgId)));
  org
    .command("rename")
    .description("rename an organization, on its billing page and in lists")
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<name>", "its new name", parseText(nameLengthMax))
    .action((orgId: string, name: string) => run((context) => rename(context, orgId, name)));
  org
    .command("suspend")
    .description("refuse an organization's searches until it is resumed; it can still read its usage")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => suspend(context, orgId, true)));
  org
    .command("resume")
    .description("accept a suspended organization's searches again")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => suspend(context, orgId, false)));
  return org;
}

async function create(context: CommandContext, options: { name: string; plan: string; credit?: number }) {
  const { balance, ...created } = await inTransaction(context.database, (transaction) =>
    createWithToken(transaction, context, options),
  );
  if (balance) await announceBalance(context, created.orgId, balance);
  return created;
}

/** Creates the organization with its credit and its first token: all of them, or nothing. */
async function createWithToken(
  transaction: Querying,
  { actor }: CommandContext,
  { name, plan: planCode, credit }: { name: string; plan: string; credit?: number },
) {
  const created = await createOrganization(transaction, { name, planCode });
  if (!created) throw new CommandRefused(`There is no plan "${planCode}". "plan list" shows all plans.`);
  const { organizationId, plan } = created;
  await recordAudit(transaction, actor, {
    action: "organization.created",
    organizationId,
    before: null,
    after: { plan: plan.code },
  });
  const mils = credit ?? plan.startingGrantMils;
  const wanted = { organizationId, grantId: newId("grant"), mils, reason: "starting grant" };
  const balance = mils > 0 ? await addCredit(transaction, actor, wanted) : undefined;
  const { tokenId, token } = await issueRecorded(transaction, actor, organizationId);
  return { orgId: organizationId, tokenId, token, plan: plan.code, creditBalanceMils: mils, balance };
}

/** With the unpaid provider calls that count now; null if Redis does not answer. */
async function show({ database, redis }: CommandContext, organizationId: string) {
  const shown = (await showOrganization(database, organizationId)) ?? refuseUnknown(organizationId);
  const plan = (await listPlans(database)).find(({ code }) => code === shown.plan);
  const unpaid = plan && readUnpaidCalls(redis, { organizationId, plan }).catch(() => null);
  return { ...shown, unpaidCalls: await unpaid, unpaidCallsMax: plan?.unpaidCalls };
}

/** The entry in the audit trail has no name: it stays when the organization is erased. */
async function rename({ database, actor }: CommandContext, organizationId: string, name: string) {
  await inTransaction(database, async (transaction) => {
    await refuseErased(transaction, organizationId);
    const renamed = await renameOrganization(transaction, organizationId, name);
    if (!renamed) refuseUnknown(organizationId);
    if (renamed.oldName !== name)
      await recordAudit(transaction, actor, { action: "organization.renamed", organizationId });
  });
  return { orgId: organizationId, name };
}

async function suspend(context: CommandContext, organizationId: string, suspended: boolean) {
  await inTransaction(context.database, async (transaction) => {
    if (!suspended) await refuseErased(transaction, organizationId);
    await suspendRecorded(transaction, context.actor, { organizationId, suspended });
  });
  await announceIdentityChange(context);
  return { orgId: organizationId, suspended };
}

/** Suspends or resumes an organization with its entry in the audit trail. @throws {CommandRefused} if it does not exist. */
export async function suspendRecorded(
  transaction: Querying,
  actor: Actor,
  { organizationId, suspended }: { organizationId: string; suspended: boolean },
): Promise<void> {
  const changed = await setSuspended(transaction, organizationId, suspended);
  if (!changed) refuseUnknown(organizationId);
  await recordAudit(transaction, actor, {
    action: suspended ? "organization.suspended" : "organization.resumed",
    organizationId,
    before: { suspended: changed.wasSuspended },
    after: { suspended },
  });
}

function refuseUnknown(organizationId: string): never {
  throw new CommandRefused(`There is no organization ${organizationId}.`);
}

import type { Command } from "commander";
import { grantCredit, grantRefusal } from "../credits/ledger.ts";
import { newId } from "../ids.ts";
import { createOrganization, setSuspended, showOrganization } from "../organizations/organizations.ts";
import { issueToken } from "../organizations/tokens.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import { addTopupCommands } from "./topups.ts";

const nameLengthMax = 200;
const noteLengthMax = 500;

export function addOrganizationCommands(program: Command, run: RunCommand): void {
  const org = program.command("org").description("organizations: the customers, who hold credit and tokens");
  org
    .command("create")
    .description("create an organization and its first token, which is shown only now")
    .requiredOption("--name <name>", "its name", parseText(nameLengthMax))
    .requiredOption("--plan <code>", "its plan (see: plan list)")
    .option("--credit <mils>", "its first credit, instead of the plan's starting grant", parseWholeNumber(0))
    .action((options: { name: string; plan: string; credit?: number }) => run((context) => create(context, options)));
  org
    .command("show")
    .description("show an organization")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => show(context, orgId)));
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

  const credit = program.command("credit").description("credit of organizations, in mils (1 mil = 1/1000 USD)");
  credit
    .command("grant")
    .description("add credit to an organization")
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<mils>", "the amount", parseWholeNumber(1))
    .option("--id <grant>", "an id that you choose: repeated grants with it count once", parseText(noteLengthMax))
    .option("--reason <text>", "a note for the ledger", parseText(noteLengthMax), "operator")
    .action((orgId: string, mils: number, options: { id?: string; reason: string }) =>
      run((context) => grant(context, orgId, mils, options)),
    );
  addTopupCommands(credit, run);
}

async function create(context: CommandContext, options: { name: string; plan: string; credit?: number }) {
  const created = await createOrganization(context.database, { name: options.name, planCode: options.plan });
  if (!created) throw new CommandRefused(`There is no plan "${options.plan}". "plan list" shows all plans.`);
  const { organizationId, plan } = created;
  const mils = options.credit ?? plan.startingGrantMils;
  if (mils > 0) await addCredit(context, { organizationId, grantId: newId("grant"), mils, reason: "starting grant" });
  const issued = await issueToken(context.database, organizationId);
  if (!issued) throw new CommandRefused(`The organization ${organizationId} was deleted in the meantime.`);
  return { orgId: organizationId, ...issued, plan: plan.code, creditBalanceMils: mils };
}

async function show({ database }: CommandContext, organizationId: string) {
  return (await showOrganization(database, organizationId)) ?? refuseUnknown(organizationId);
}

async function suspend(context: CommandContext, organizationId: string, suspended: boolean) {
  if (!(await setSuspended(context.database, organizationId, suspended))) refuseUnknown(organizationId);
  await announceIdentityChange(context);
  return { orgId: organizationId, suspended };
}

async function grant(
  context: CommandContext,
  organizationId: string,
  mils: number,
  options: { id?: string; reason: string },
) {
  const grantId = options.id ?? newId("grant");
  const { fresh, balanceMils } = await addCredit(context, { organizationId, grantId, mils, reason: options.reason });
  return { orgId: organizationId, grantId, grantedMils: fresh ? mils : 0, balanceMils, repeated: !fresh };
}

async function addCredit(context: CommandContext, wanted: Parameters<typeof grantCredit>[1]) {
  const granted = await grantCredit(context.database, wanted).catch(refuseGrant);
  if (!granted) refuseUnknown(wanted.organizationId);
  await announceBalance(context, wanted.organizationId, granted);
  return granted;
}

function refuseGrant(error: unknown): never {
  const refusal = grantRefusal(error);
  throw refusal === undefined ? error : new CommandRefused(refusal);
}

function refuseUnknown(organizationId: string): never {
  throw new CommandRefused(`There is no organization ${organizationId}.`);
}

import type { Command } from "commander";
import type { Context } from "../context.ts";
import { grantCredit, grantRefusal } from "../credits/ledger.ts";
import { newId } from "../ids.ts";
import { createOrganization, setSuspended, showOrganization } from "../organizations/organizations.ts";
import { issueToken } from "../organizations/tokens.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { addTopupCommands } from "./topups.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import { runCommand } from "./run-command.ts";

const nameLengthMax = 200;
const noteLengthMax = 500;

export function addOrganizationCommands(program: Command): void {
  const org = program.command("org").description("organizations: who pays");
  org
    .command("create")
    .description("create an organization with a first token, which is shown only here")
    .requiredOption("--name <name>", "what the organization is called", parseText(nameLengthMax))
    .requiredOption("--plan <code>", "its plan (see: plan list)")
    .option("--credit <mils>", "credit to begin with, in place of the plan's starting grant", parseWholeNumber(0))
    .action((options: { name: string; plan: string; credit?: number }) =>
      runCommand((context) => create(context, options)),
    );
  org
    .command("show")
    .description("show an organization")
    .argument("<org>", "its id", parseId("org"))
    .action((id: string) => runCommand((context) => show(context, id)));
  org
    .command("suspend")
    .description("refuse its searches until it is resumed; it can still read its usage")
    .argument("<org>", "its id", parseId("org"))
    .action((id: string) => runCommand((context) => suspend(context, id, true)));
  org
    .command("resume")
    .description("let a suspended organization search again")
    .argument("<org>", "its id", parseId("org"))
    .action((id: string) => runCommand((context) => suspend(context, id, false)));

  const credit = program.command("credit").description("credit of organizations, in mils (1 mil = 1/1000 USD)");
  credit
    .command("grant")
    .description("add credit to an organization")
    .argument("<org>", "its id", parseId("org"))
    .argument("<mils>", "how much", parseWholeNumber(1))
    .option("--id <grant>", "an id of your own: a grant that is repeated with it counts once", parseText(noteLengthMax))
    .option("--reason <text>", "a note for the ledger", parseText(noteLengthMax), "operator")
    .action((id: string, mils: number, options: { id?: string; reason: string }) =>
      runCommand((context) => grant(context, id, mils, options)),
    );
  addTopupCommands(credit);
}

async function create(context: Context, options: { name: string; plan: string; credit?: number }) {
  const made = await createOrganization(context.database, { name: options.name, planCode: options.plan });
  if (!made) throw new CommandRefused(`There is no plan "${options.plan}"; "plan list" shows them.`);
  const { organizationId, plan } = made;
  const mils = options.credit ?? plan.startingGrantMils;
  if (mils > 0) await addCredit(context, { organizationId, grantId: newId("grant"), mils, reason: "starting grant" });
  const issued = await issueToken(context.database, organizationId);
  if (!issued) throw new CommandRefused(`The organization ${organizationId} has disappeared.`);
  return { orgId: organizationId, ...issued, plan: plan.code, creditBalanceMils: mils };
}

async function show(context: Context, organizationId: string) {
  return (await showOrganization(context.database, organizationId)) ?? unknown(organizationId);
}

async function suspend(context: Context, organizationId: string, suspended: boolean) {
  if (!(await setSuspended(context.database, organizationId, suspended))) unknown(organizationId);
  await announceIdentityChange(context.redis);
  return { orgId: organizationId, suspended };
}

async function grant(context: Context, organizationId: string, mils: number, options: { id?: string; reason: string }) {
  const grantId = options.id ?? newId("grant");
  const granted = await addCredit(context, { organizationId, grantId, mils, reason: options.reason });
  const { fresh, balanceMils } = granted;
  return { orgId: organizationId, grantId, grantedMils: fresh ? mils : 0, balanceMils, repeated: !fresh };
}

async function addCredit(context: Context, wanted: Parameters<typeof grantCredit>[1]) {
  const granted = (await grantCredit(context.database, wanted).catch(refuseGrant)) ?? unknown(wanted.organizationId);
  await announceBalance(context.redis, wanted.organizationId, granted);
  return granted;
}

function refuseGrant(error: unknown): never {
  const sentence = grantRefusal(error);
  throw sentence === undefined ? error : new CommandRefused(sentence);
}

function unknown(organizationId: string): never {
  throw new CommandRefused(`There is no organization ${organizationId}.`);
}

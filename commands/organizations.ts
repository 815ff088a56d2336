import type { Command } from "commander";
import { z } from "zod";
import { type Actor, recordAudit } from "../shared/audit/audit.ts";
import { readKeptDays, setKeptDays } from "../shared/credits/kept-answers.ts";
import { listPlans } from "../shared/credits/plans.ts";
import { readUnpaidCalls } from "../shared/credits/unpaid-calls.ts";
import { rowOf } from "../shared/database/row.ts";
import { inTransaction, type Querying } from "../shared/database/transaction.ts";
import { newId } from "../shared/ids.ts";
import { createOrganization, renameOrganization, setSuspended } from "../shared/organizations/organizations.ts";
import { whenReady } from "../shared/redis/connect.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import { changeRecorded } from "./credit.ts";
import { parseMils } from "./money.ts";
import { announceBalance, announceIdentityChange } from "./publish-changes.ts";
import { CommandRefused, redisTimeoutMs, refuseErased, refuseUnknown, requireOrganization } from "./refusals.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import { issueOrRefuse, tokenNameLengthMax } from "./tokens.ts";

const nameLengthMax = 200;
const keptDaysMax = 90;
const listedDefault = 100;
const listedMax = 10_000;

interface NewOrganization {
  name: string;
  plan: string;
  credit?: number;
  tokenName?: string;
}

/** @returns the parent command of those about organizations. */
export function addOrganizationCommands(program: Command, run: RunCommand): Command {
  const org = program.command("org").description("organizations: the customers, with their credit and tokens");
  org
    .command("create")
    .description("create an organization and its first token, which is shown only once")
    .requiredOption("--name <name>", "its name", parseText(nameLengthMax))
    .requiredOption("--plan <code>", "its plan (see: plan list)")
    .option("--credit <mils>", "its initial credit, instead of the plan's starting grant", parseMils(program, 0))
    .option("--token-name <name>", "a name of the token, to show in lists", parseText(tokenNameLengthMax))
    .action((options: NewOrganization) => run((context) => create(context, options)));
  org
    .command("show")
    .description("show an organization")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => show(context, orgId)));
  org
    .command("rename")
    .description("rename an organization, on its account pages and in lists")
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
  org
    .command("keep-answers")
    .description("show or set for how many days an organization's answers are kept; KEPT_ANSWERS_DAYS is the maximum")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--days <n>", "days, 0 for not at all", parseWholeNumber(0, keptDaysMax))
    .action((orgId: string, { days }: { days?: number }) => run((context) => keep(context, orgId, days)));
  addFindCommands(org, run);
  return org;
}

function addFindCommands(org: Command, run: RunCommand): void {
  org
    .command("list")
    .description("list the organizations, newest first")
    .option("--before <org>", "only organizations older than this one, for the next page", parseId("org"))
    .option("--limit <n>", "how many at most", parseWholeNumber(1, listedMax), listedDefault)
    .action((options: { before?: string; limit: number }) => run((context) => list(context, options)));
  org
    .command("find")
    .description("find organizations by part of their name, of their id, or of the id of one of their tokens")
    .argument(
      "<text>",
      "part of the name in upper or lower case, or 6 or more characters of an id",
      parseText(nameLengthMax),
    )
    .option("--limit <n>", "how many at most", parseWholeNumber(1, listedMax), listedDefault)
    .action((text: string, { limit }: { limit: number }) => run((context) => find(context, text.trim(), limit)));
}

async function create(context: CommandContext, options: NewOrganization) {
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
  { name, plan: planCode, credit, tokenName }: NewOrganization,
) {
  const created = await createOrganization(transaction, { name, planCode });
  if (!created) throw new CommandRefused(`There is no plan "${planCode}". "plan list" shows all plans.`);
  const { organizationId, plan } = created;
  const values = { before: null, after: { plan: plan.code } };
  await recordAudit(transaction, { actor, action: "organization.created", organizationId, ...values });
  const mils = credit ?? plan.startingGrantMils;
  const wanted = { organizationId, grantId: newId("grant"), mils, reason: "starting grant" };
  const balance = mils > 0 ? await changeRecorded(transaction, actor, "grant", wanted) : undefined;
  const { tokenId, token } = await issueOrRefuse(transaction, actor, organizationId, { name: tokenName });
  return { orgId: organizationId, tokenId, token, plan: plan.code, creditBalanceMils: mils, balance };
}

/** With the unpaid provider calls that count now; null if Redis does not answer. */
async function show({ database, redis }: CommandContext, organizationId: string) {
  const shown = await requireOrganization(database, organizationId);
  const plan = (await listPlans(database)).find(({ code }) => code === shown.plan);
  if (!plan) return shown;
  const isReachable = await whenReady(redis, redisTimeoutMs);
  const unpaidCalls = isReachable ? await readUnpaidCalls(redis, { organizationId, plan }).catch(() => null) : null;
  return { ...shown, unpaidCalls, unpaidCallsMax: plan.unpaidCalls };
}

/** The entry in the audit trail has no name: it stays when the organization is erased. */
async function rename({ database, actor }: CommandContext, organizationId: string, name: string) {
  await inTransaction(database, async (transaction) => {
    await refuseErased(transaction, organizationId);
    const before = await renameOrganization(transaction, organizationId, name);
    if (!before) refuseUnknown(organizationId);
    if (before.name !== name) await recordAudit(transaction, { actor, action: "organization.renamed", organizationId });
  });
  return { orgId: organizationId, name };
}

async function keep(context: CommandContext, organizationId: string, days: number | undefined) {
  const { database, actor, config } = context;
  const daysMax = config.KEPT_ANSWERS_DAYS;
  await requireOrganization(database, organizationId);
  if (days !== undefined) {
    if (days > daysMax) throw new CommandRefused(`KEPT_ANSWERS_DAYS allows at most ${daysMax} days.`);
    await inTransaction(database, async (transaction) => {
      await refuseErased(transaction, organizationId);
      await setKeptDays(transaction, { actor, organizationId }, days);
    });
    await announceIdentityChange(context);
  }
  return { orgId: organizationId, days: await readKeptDays(database, organizationId), daysMax };
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
  const before = await setSuspended(transaction, organizationId, suspended);
  if (!before) refuseUnknown(organizationId);
  const action = suspended ? "organization.suspended" : "organization.resumed";
  const values = { before: { suspended: before.isSuspended }, after: { suspended } };
  await recordAudit(transaction, { actor, action, organizationId, ...values });
}

async function list({ database, warn }: CommandContext, { before, limit }: { before?: string; limit: number }) {
  const { organizations, isCut } = await readNewest(database, madeBefore, before, limit);
  if (isCut) warn(`There are more. For the next page: --before ${organizations.at(-1)?.orgId}`);
  return { organizations };
}

async function find({ database, warn }: CommandContext, text: string, limit: number) {
  const { organizations, isCut } = await readNewest(database, matching, text, limit);
  if (isCut) warn("There are more. Use a longer part, or --limit.");
  return { organizations };
}

const listedRow = rowOf({
  orgId: z.string(),
  name: z.string(),
  plan: z.string(),
  balanceMils: z.number(),
  state: z.enum(["active", "suspended", "erased"]),
  createdAt: z.date(),
});

/** Ids begin with the time at which they were made. */
const madeBefore = "$1::text is null or id < $1";
/**
 * By a part of the name in any case, or of an id. Ids are letters and digits at random: a shorter part of one would find organizations
 * whose names have nothing of it.
 */
const matching = `id in (
  select id from organizations
  where erased_at is null and position(lower($1) in lower(name)) > 0 or length($1) >= 6 and position(lower($1) in id) > 0
  union select organization_id from tokens where length($1) >= 6 and position(lower($1) in id) > 0)`;

/** Reads the newest organizations that meet a condition about a value. `isCut` if there are more than `limit`. */
async function readNewest(
  database: Querying,
  condition: typeof madeBefore | typeof matching,
  value: string | undefined,
  limit: number,
) {
  const { rows } = await database.query(
    `select id as org_id, name, plan_code as plan, balance_mils, created_at, case when erased_at is not null then 'erased'
       when suspended_at is not null then 'suspended' else 'active' end as state
     from organizations where ${condition} order by id desc limit $2`,
    [value, limit + 1],
  );
  const organizations = rows.slice(0, limit).map((row) => listedRow.parse(row));
  return { organizations, isCut: rows.length > limit };
}

import type { Command } from "commander";
import { type Actor, recordAudit } from "../audit/audit.ts";
import { inTransaction, type Querying } from "../database/transaction.ts";
import { showOrganization } from "../organizations/organizations.ts";
import { issueToken, listTokens, revokeToken } from "../organizations/tokens.ts";
import { parseId, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { refuseErased } from "./refuse-erased.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const daysMax = 3_650;

export function addTokenCommands(program: Command, run: RunCommand): void {
  const token = program.command("token").description("bearer tokens of organizations");
  token
    .command("issue")
    .description("issue a token, which is shown only now")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--expires <days>", "days until it expires; without it, never", parseWholeNumber(1, daysMax))
    .action((orgId: string, options: { expires?: number }) => run((context) => issue(context, orgId, options.expires)));
  token
    .command("list")
    .description("list an organization's tokens by their last four characters")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => list(context, orgId)));
  token
    .command("revoke")
    .description("revoke a token permanently; every API refuses it within two seconds")
    .argument("<tokenId>", "the token's id, not the token", parseId("tok"))
    .action((tokenId: string) => run((context) => revoke(context, tokenId)));
}

async function issue({ database, actor }: CommandContext, orgId: string, expiresInDays: number | undefined) {
  return inTransaction(database, (transaction) => issueRecorded(transaction, actor, orgId, expiresInDays));
}

/** Issues a token with its entry in the audit trail. @throws {CommandRefused} if there is no such organization. */
export async function issueRecorded(transaction: Querying, actor: Actor, orgId: string, expiresInDays?: number) {
  await refuseErased(transaction, orgId);
  const issued = await issueToken(transaction, orgId, expiresInDays);
  if (!issued) throw new CommandRefused(`There is no organization ${orgId}.`);
  const { expiresAt, ...shown } = issued;
  const entry = { organizationId: orgId, subject: shown.tokenId, before: null, after: { expiresAt } };
  await recordAudit(transaction, actor, { action: "token.issued", ...entry });
  return shown;
}

async function list({ database }: CommandContext, orgId: string) {
  if (!(await showOrganization(database, orgId))) throw new CommandRefused(`There is no organization ${orgId}.`);
  return { orgId, tokens: await listTokens(database, orgId) };
}

async function revoke(context: CommandContext, tokenId: string) {
  await inTransaction(context.database, (transaction) => revokeRecorded(transaction, context.actor, tokenId));
  await announceIdentityChange(context);
  return { tokenId, revoked: true };
}

/** Revokes a token with its entry in the audit trail. @throws {CommandRefused} if there is no such token. */
export async function revokeRecorded(transaction: Querying, actor: Actor, tokenId: string): Promise<void> {
  const token = await revokeToken(transaction, tokenId);
  if (!token) throw new CommandRefused(`There is no token ${tokenId}.`);
  await recordAudit(transaction, actor, {
    action: "token.revoked",
    organizationId: token.organizationId,
    subject: tokenId,
    before: { revoked: token.wasRevoked },
    after: { revoked: true },
  });
}

import type { Command } from "commander";
import type { Context } from "../context.ts";
import { showOrganization } from "../organizations/organizations.ts";
import { issueToken, listTokens, revokeToken } from "../organizations/tokens.ts";
import { parseId, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { runCommand } from "./run-command.ts";

const daysMax = 3_650;

export function addTokenCommands(program: Command): void {
  const token = program.command("token").description("bearer tokens of organizations");
  token
    .command("issue")
    .description("issue a token, which is shown only here")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--expires <days>", "days until it expires; never without it", parseWholeNumber(1, daysMax))
    .action((orgId: string, options: { expires?: number }) =>
      runCommand((context) => issue(context, orgId, options.expires)),
    );
  token
    .command("list")
    .description("list an organization's tokens by their last four characters")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => runCommand((context) => list(context, orgId)));
  token
    .command("revoke")
    .description("refuse a token everywhere within two seconds, for good")
    .argument("<tokenId>", "the token's id, not the token", parseId("tok"))
    .action((tokenId: string) => runCommand((context) => revoke(context, tokenId)));
}

async function issue(context: Context, orgId: string, expiresInDays: number | undefined) {
  const issued = await issueToken(context.database, orgId, expiresInDays);
  if (!issued) throw new CommandRefused(`There is no organization ${orgId}.`);
  return issued;
}

async function list(context: Context, orgId: string) {
  if (!(await showOrganization(context.database, orgId)))
    throw new CommandRefused(`There is no organization ${orgId}.`);
  return { orgId, tokens: await listTokens(context.database, orgId) };
}

async function revoke(context: Context, tokenId: string) {
  if (!(await revokeToken(context.database, tokenId))) throw new CommandRefused(`There is no token ${tokenId}.`);
  await announceIdentityChange(context.redis);
  return { tokenId, revoked: true };
}

import type { Command } from "commander";
import type { Actor } from "../shared/audit/audit.ts";
import { inTransaction, type Querying } from "../shared/database/transaction.ts";
import { type Scope, scopes } from "../shared/organizations/organizations.ts";
import { issueRecorded, revokeFamilyRecorded } from "../api/organizations/audited-changes.ts";
import { type AccountToken, findToken, isTokenShaped, listTokens, type TokenTerms } from "../api/tokens/tokens.ts";
import { parseId, parseList, parseText, parseWholeNumber } from "./argument-parsers.ts";
import type { FormatResult } from "./format-result.ts";
import { dayLimitRequired } from "./limits.ts";
import { parseMils } from "./money.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { CommandRefused, refuseErased, refuseUnknown, requireOrganization } from "./refusals.ts";
import type { CommandContext, RunCommand, Terminal } from "./run-command.ts";

const daysMax = 3_650;
export const tokenNameLengthMax = 100;

/** The options of `token issue`, as commander names them. */
interface IssueOptions {
  name?: string;
  scopes: Scope[];
  expires?: number;
  day?: number;
  month?: number;
}

export function addTokenCommands(program: Command, run: RunCommand, terminal: Terminal): void {
  const token = program.command("token").description("bearer tokens of organizations");
  token
    .command("issue")
    .description("issue a token, which is shown only once")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--name <name>", "a name to show in lists", parseText(tokenNameLengthMax))
    .option("--scopes <list>", `comma list of ${scopes.join(", ")}: what the token may do`, parseList(scopes), [
      "search",
      "usage",
    ])
    .option("--expires <days>", "days until it expires (default: never)", parseWholeNumber(1, daysMax))
    .option("--day <mils>", "the most that it may spend in a UTC day (default: no limit)", parseMils(program, 0))
    .option(
      "--month <mils>",
      "the most that it may spend in a calendar month (default: no limit)",
      parseMils(program, 0),
    )
    .action((orgId: string, options: IssueOptions, command: Command) => {
      const { expires: expiresInDays, day: dayMils, month: monthMils, ...terms } = options;
      if (terms.scopes.includes("door")) {
        if (terms.scopes.length > 1) command.error("error: --scopes: expected door alone, or without it.");
        if (dayMils === undefined) command.error(`error: ${dayLimitRequired}`);
      }
      return run((context) => issue(context, orgId, { ...terms, expiresInDays, dayMils, monthMils }));
    });
  token
    .command("list")
    .description("list an organization's tokens by their last four characters, with scopes and last use")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => list(context, orgId), { toText }));
  token
    .command("find")
    .summary("show the owner of a token, without printing it")
    .description(
      "Show the owner of a token, and whether the token still works. Never prints the token. With - it reads the token from stdin, which keeps it out of the shell's history and the list of processes.",
    )
    .argument("<token>", "the token, or - to read it from stdin")
    .action(async (given: string, _options: object, command: Command) => {
      const found = (given === "-" ? await terminal.readLine() : given).trim();
      if (!isTokenShaped(found)) command.error(`error: ${notTokenShaped}`);
      await run((context) => find(context, found));
    });
  token
    .command("revoke")
    .description(
      "revoke a token permanently, and list the valid tokens that it made on the account pages; every API refuses it within two seconds",
    )
    .argument("<tokenId>", "the token's id, not the token", parseId("tok"))
    .option("--children", "also revoke the tokens that it made, and their descendants")
    .action((tokenId: string, { children = false }: { children?: boolean }) =>
      run((context) => revoke(context, tokenId, children)),
    );
}

async function issue({ database, actor }: CommandContext, orgId: string, terms: TokenTerms) {
  const issued = await inTransaction(database, (transaction) => issueOrRefuse(transaction, actor, orgId, terms));
  return { ...issued, dayLimitMils: terms.dayMils ?? null, monthLimitMils: terms.monthMils ?? null };
}

/** Issues a token with its entry in the audit trail. @throws {CommandRefused} if there is no such organization, or it was erased. */
export async function issueOrRefuse(transaction: Querying, actor: Actor, orgId: string, terms?: TokenTerms) {
  await refuseErased(transaction, orgId);
  const issued = await issueRecorded(transaction, { actor }, orgId, terms);
  return issued ?? refuseUnknown(orgId);
}

async function list({ database }: CommandContext, orgId: string) {
  await requireOrganization(database, orgId);
  return { orgId, tokens: await listTokens(database, orgId) };
}

/** Does not repeat what was given, which may be most of a token. */
const notTokenShaped =
  "This is not a Serpmill token. A token is smk_ and 39 letters and digits; the last 7 are a checksum. A character may be missing or wrong.";

/** No message has the token. */
async function find({ database }: CommandContext, token: string) {
  const found = await findToken(database, token);
  if (!found) throw new CommandRefused("This token was never issued here, or its organization was erased.");
  const { isValid: _isValid, ...fields } = found;
  return { ...fields, state: stateOf(found) };
}

function stateOf({ revokedAt, isValid }: AccountToken) {
  if (revokedAt !== null) return "revoked";
  return isValid ? "valid" : "expired";
}

/** The columns that fit a terminal: those of the limits only if a token has one. */
function toText({ tokens }: Awaited<ReturnType<typeof list>>, format: FormatResult): string {
  const limited = tokens.some(({ dayLimitMils, monthLimitMils }) => (dayLimitMils ?? monthLimitMils) !== null);
  const shown = tokens.map((token) => {
    const { tokenId, name, scopes: granted, last4, expiresAt, lastUsedAt, dayLimitMils, monthLimitMils } = token;
    const limits = limited && { dayLimitMils, monthLimitMils };
    return { tokenId, name, scopes: granted, last4, state: stateOf(token), ...limits, expiresAt, lastUsedAt };
  });
  return format({ tokens: shown });
}

async function revoke(context: CommandContext, tokenId: string, withDescendants: boolean) {
  const { database, actor } = context;
  const descendants = await inTransaction(database, (transaction) =>
    revokeFamilyRecorded(transaction, { actor }, { tokenId, withDescendants }),
  );
  if (!descendants) throw new CommandRefused(`There is no token ${tokenId}.`);
  await announceIdentityChange(context);
  const children = descendants.map(({ tokenId: id, parentId, name, last4, expiresAt }) => {
    return { tokenId: id, parentId, name, last4, expiresAt, revoked: withDescendants };
  });
  return { tokenId, revoked: true, children };
}

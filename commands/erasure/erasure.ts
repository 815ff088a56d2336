import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { recordAudit } from "../../shared/audit/audit.ts";
import { inTransaction } from "../../shared/database/transaction.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { revokeRecorded } from "../../api/organizations/audited-changes.ts";
import { listTokens } from "../../api/tokens/tokens.ts";
import { expireSessions, openStripe, stripeErrorFields } from "../../api/topups/stripe.ts";
import { parseId } from "../argument-parsers.ts";
import { inAskedUnit } from "../money.ts";
import { suspendRecorded } from "../organizations.ts";
import { announceIdentityChange } from "../publish-changes.ts";
import { CommandRefused, openNew, requireOrganization, requireRedis } from "../refusals.ts";
import type { CommandContext, RunCommand, Terminal } from "../run-command.ts";
import { beginErasure, countOpen, eraseFromRedis, eraseRows, type ErasedRows } from "./erase-organization.ts";
import { exportOrganization } from "./export-organization.ts";

/** From then on no API takes a revoked token, also where the announcement was lost. */
const revocationMs = 2_000;
/** Millions of searches take minutes, and the operator sees how far they are. */
const progressMs = 5_000;

/** @param org the parent command. */
export function addErasureCommands(org: Command, run: RunCommand, terminal: Terminal): void {
  org
    .command("export")
    .description("print all data of an organization, one line of JSON per item")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--output <file>", "write the lines to a new file, and a summary to stdout")
    .action((orgId: string, { output }: { output?: string }) =>
      run((context) => writeExport(context, terminal, orgId, output), {
        toData: output === undefined ? (end) => `${JSON.stringify(end)}\n` : undefined,
      }),
    );
  org
    .command("erase")
    .description(
      "erase an organization: names, keywords, answers, sessions. The ledger keeps its ids and amounts. Cannot be undone",
    )
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--yes", "skip the confirmation")
    .action((orgId: string, { yes = false }: { yes?: boolean }, command: Command) => {
      const ask = yes ? () => orgId : terminal.ask;
      if (!ask) command.error("error: this cannot be undone. Add --yes, or confirm in a terminal.");
      return run((context) => erase(context, orgId, (question) => ask(inAskedUnit(command, question))));
    });
}

/** The last line counts the others, so that an export that was cut off shows. */
async function writeExport(context: CommandContext, terminal: Terminal, orgId: string, output: string | undefined) {
  const { database, actor } = context;
  await requireRedis(context);
  await requireOrganization(database, orgId);
  const file = output === undefined ? undefined : await openNew(output);
  const write = file
    ? async (text: string) => file.writeFile(text).then(() => true)
    : async (text: string) => terminal.writeLine(text);
  try {
    await recordAudit(database, { actor, action: "organization.exported", organizationId: orgId });
    let lines = 0;
    for await (const line of exportOrganization(context, orgId)) {
      if (!(await write(`${JSON.stringify(line)}\n`))) break;
      lines += 1;
    }
    const end = { kind: "end", orgId, lines };
    if (!file) return end;
    await file.writeFile(`${JSON.stringify(end)}\n`);
    await file.sync();
    return { orgId, lines, output };
  } catch (error) {
    if (output !== undefined) await rm(output, { force: true });
    throw error;
  } finally {
    await file?.close();
  }
}

/** @param ask returns the id that the operator typed. */
async function erase(context: CommandContext, orgId: string, ask: (question: string) => string | Promise<string>) {
  const { database, redis, actor } = context;
  await requireRedis(context);
  const { balanceMils, erasedAt } = await requireOrganization(database, orgId);
  const question = `This erases ${orgId} and cannot be undone. ${balanceMils} mils of credit will be lost.\nType the id again: `;
  if ((await ask(question)).trim() !== orgId) throw new CommandRefused("The id does not match. Nothing was changed.");
  // An earlier run that began the erasure has waited.
  if (erasedAt === null) await endUse(context, orgId);
  const begun = await beginErasure(database, actor, orgId);
  if (typeof begun === "string")
    throw new CommandRefused(`The organization changed in the meantime (${begun}). Run the command again.`);
  try {
    const rows = await eraseRows(database, orgId, { onPage: sayProgress(context) });
    await eraseFromRedis({ database, redis }, orgId);
    await removeFailedJobs(context, orgId);
    await expirePayments(context, orgId);
    return { orgId, erased: true, balanceMils: begun.balanceMils, ...rows };
  } catch (error) {
    context.warn(`${orgId} is partly erased. Run the command again to erase the rest.`);
    throw error;
  }
}

/** Waits until nothing of the organization is in use any more, and nothing new begins. @throws {CommandRefused} if something runs. */
async function endUse(context: CommandContext, orgId: string): Promise<void> {
  await suspendAndRevoke(context, orgId);
  await sleep(revocationMs);
  refuseOpen(await countOpen(context, orgId));
  // Repeats that waited for a search get its end from Redis until then.
  await sleep(protocolTimes.idempotencyEndMs);
  // One of them may have become a search, and one that was slow to be admitted is open by now.
  refuseOpen(await countOpen(context, orgId));
}

function sayProgress({ warn }: CommandContext): (erased: ErasedRows) => void {
  let saidAtMs = performance.now();
  return ({ tokens, answers, searches }) => {
    if (performance.now() - saidAtMs < progressMs) return;
    saidAtMs = performance.now();
    warn(`Erased so far: ${tokens} tokens, ${answers} answers, ${searches} searches.`);
  };
}

/**
 * Suspends the organization and revokes its tokens, each with its entry in the audit trail, and each in a transaction of its own:
 * searches that end now wait for the organization's row no longer than for its suspension.
 */
async function suspendAndRevoke(context: CommandContext, orgId: string): Promise<void> {
  const { database, actor } = context;
  await inTransaction(database, (transaction) =>
    suspendRecorded(transaction, actor, { organizationId: orgId, suspended: true }),
  );
  for (const { tokenId, revokedAt } of await listTokens(database, orgId))
    if (!revokedAt) await inTransaction(database, (transaction) => revokeRecorded(transaction, { actor }, tokenId));
  await announceIdentityChange(context);
}

function refuseOpen({ searches, charges }: { searches: number; charges: number }): void {
  if (searches + charges === 0) return;
  throw new CommandRefused(
    `The organization is suspended and its tokens are revoked, but ${searches} searches still run and ${charges} charges wait for confirmation of their delivery. Nothing has been erased yet. Run the command again in a few minutes.`,
  );
}

/** Stripe may be away: the erasure is complete all the same, because a payment of an erased organization is not credited. */
async function expirePayments({ config, warn }: CommandContext, orgId: string): Promise<void> {
  const stripe = await openStripe(config);
  if (!stripe) return;
  await expireSessions(stripe, orgId).catch((error: unknown) =>
    warn(
      `Stripe did not expire the payments that ${orgId} has begun: ${JSON.stringify(stripeErrorFields(error))}. Run the command again, or refund what is paid in the next 24 hours.`,
    ),
  );
}

async function removeFailedJobs({ redis }: CommandContext, orgId: string): Promise<void> {
  // Loaded on demand: BullMQ would add to the start of every other command.
  const { removeFailedSearches } = await import("../../shared/queue/search-queue.ts");
  await removeFailedSearches(redis, orgId);
}

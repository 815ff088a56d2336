import { type Command, Option } from "commander";
import { type AuditAction, auditActions, readAudit, type StoredAuditEntry } from "../shared/audit/audit.ts";
import { parseId, parseTime, parseWholeNumber } from "./argument-parsers.ts";
import type { FormatResult } from "./format-result.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const entriesDefault = 100;
const entriesMax = 10_000;

interface ListOptions {
  org?: string;
  since?: Date;
  action?: AuditAction;
  limit: number;
}

export function addAuditCommands(program: Command, run: RunCommand): void {
  program
    .command("audit")
    .description("the audit trail: what operators, accounts and Stripe did")
    .command("list")
    .description("list the newest entries, oldest first")
    .option("--org <org>", "only of this organization", parseId("org"))
    .option("--since <time>", "only since this time, such as 2026-11-22 or 2026-11-22T09:30Z", parseTime)
    .addOption(new Option("--action <action>", "only of this kind").choices(auditActions))
    .option("--limit <n>", "how many at most", parseWholeNumber(1, entriesMax), entriesDefault)
    .action((options: ListOptions) => run((context) => list(context, options), { toText }));
}

async function list({ database, warn }: CommandContext, { org: organizationId, limit, ...filter }: ListOptions) {
  const newest = await readAudit(database, { organizationId, ...filter, limit: limit + 1 });
  if (newest.length > limit) warn(`There are more than the newest ${limit}. Use --limit, at most ${entriesMax}.`);
  return { entries: newest.slice(-limit) };
}

/** The columns that fit a terminal, with what was changed as one text. */
function toText({ entries }: { entries: StoredAuditEntry[] }, format: FormatResult): string {
  const shown = entries.map(({ at, actor, action, orgId, subject, before, after }) => {
    const changed = before && after ? { before, after } : (after ?? before);
    return { at, actor, action, of: subject ?? orgId, changed };
  });
  return format({ entries: shown });
}

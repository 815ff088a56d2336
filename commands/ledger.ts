import { type Command, Option } from "commander";
import { stringify } from "csv-stringify/sync";
import { z } from "zod";
import type { Redis } from "ioredis";
import { recordAudit } from "../shared/audit/audit.ts";
import { countOpenGaps, listOpenGaps } from "../shared/credits/ledger-gaps.ts";
import type { Database } from "../shared/database/pool.ts";
import { rowOf } from "../shared/database/row.ts";
import { hostsOf } from "../shared/config/redis-address.ts";
import { inTransaction } from "../shared/database/transaction.ts";
import { refuseUnfit, whenReady } from "../shared/redis/connect.ts";
import { type EntryKind, entryKinds, readNewestEntries } from "../api/ledger/ledger-pages.ts";
import { parseId, parseMonth, parseText, parseTime, parseWholeNumber } from "./argument-parsers.ts";
import { checkArchive, exportMonth } from "./archive/archive.ts";
import type { FormatResult } from "./format-result.ts";
import { CommandRefused, redisTimeoutMs, requireOrganization } from "./refusals.ts";
import { type CommandContext, exitCodes, type RunCommand } from "./run-command.ts";
import { verifyDecisions, verifyKeys } from "./verification/decisions.ts";
import { type EntryCounts, verifyEntries } from "./verification/entries.ts";
import { verifyRedis } from "./verification/redis.ts";
import { FoundViolations, type Violation } from "./verification/violations.ts";

const entriesDefault = 100;
const entriesMax = 100_000;
const noteLengthMax = 500;

interface ListOptions {
  since?: Date;
  kind?: EntryKind;
  limit: number;
  csv?: true;
}

export function addLedgerCommands(program: Command, run: RunCommand): void {
  const ledger = program.command("ledger").description("the ledger: every mil granted, charged or credited back");
  ledger
    .command("list")
    .description("list the newest entries of an organization, oldest first")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--since <time>", "only since this time, such as 2026-11-22 or 2026-11-22T09:30Z", parseTime)
    .addOption(new Option("--kind <kind>", "only entries of this kind").choices(entryKinds))
    .option("--limit <n>", "how many at most", parseWholeNumber(1, entriesMax), entriesDefault)
    .option("--csv", "print comma-separated values with a header line")
    .action((orgId: string, options: ListOptions) =>
      run((context) => list(context, orgId, options), { toText, toData: options.csv && toCsv }),
    );
  ledger
    .command("verify")
    .description(
      "check the invariants of all organizations while the service runs, on what is new since the last check; exit 4 if one is broken, 3 if Redis was not checked",
    )
    .option("--full", "check everything, not only what is new")
    .action(({ full }: { full?: true }) =>
      run(
        async ({ config, database, redis, warn }) => {
          const isReachable = await whenReady(redis, redisTimeoutMs);
          if (isReachable) await refuseUnfit(redis);
          else warn(`Redis at ${hostsOf(config.REDIS_URL)} is unreachable: only Postgres was checked.`);
          return verifyLedger(database, isReachable ? redis : undefined, { isFull: full ?? false });
        },
        { exitCode: exitCodeOf },
      ),
    );
  addArchiveCommands(ledger, run);
  ledger
    .command("gaps")
    .description("list entries that Postgres lost, as Redis knew of them, until an operator closes them")
    .option("--limit <n>", "how many at most", parseWholeNumber(1, entriesMax), entriesDefault)
    .action(({ limit }: { limit: number }) => run(({ database }) => listGaps(database, limit)));
  ledger
    .command("gap-close")
    .description("close a gap after you have dealt with it, so that it is reported no more")
    .argument("<gap>", "the gap's id", parseId("gap"))
    .requiredOption("--note <text>", "what you did about it", parseText(noteLengthMax))
    .action((gapId: string, { note }: { note: string }) => run((context) => closeGap(context, gapId, note)));
}

/** Half of the checks have not run without Redis. What they found is worth more than that. */
function exitCodeOf({ ok, redisChecked }: VerificationReport): number {
  if (!ok) return exitCodes.booksBroken;
  return redisChecked ? 0 : exitCodes.outOfReach;
}

function addArchiveCommands(ledger: Command, run: RunCommand): void {
  ledger
    .command("export")
    .description("write the entries of a month that is over to a compressed file, and its checksum; removes nothing")
    .requiredOption("--month <month>", "the month in UTC, such as 2026-10", parseMonth)
    .requiredOption("--out <folder>", "the folder for both files")
    .action(({ month, out: folder }: { month: string; out: string }) =>
      run((context) => exportMonth(context, { month, folder })),
    );
  ledger
    .command("export-check")
    .description(
      "compare a file of ledger export with its checksum, and each line with the ledger; exit 1 if they differ",
    )
    .argument("<file>", "the file that ends with .ndjson.gz")
    .action((file: string) => run((context) => checkArchive(context, file)));
}

async function listGaps(database: Database, limit: number) {
  const [totals, gaps] = [await countOpenGaps(database), await listOpenGaps(database, limit)];
  return { ...totals, open: gaps.map(({ organizationId: orgId, ...gap }) => ({ ...gap, orgId })) };
}

const closedRow = rowOf({ organizationId: z.string(), fresh: z.boolean() });

async function closeGap({ database, actor }: CommandContext, gapId: string, note: string) {
  return inTransaction(database, async (transaction) => {
    const { rows } = await transaction.query("select * from close_ledger_gap($1, $2)", [gapId, note]);
    if (!rows[0]) throw new CommandRefused(`There is no gap ${gapId}.`);
    const { organizationId, fresh } = closedRow.parse(rows[0]);
    if (fresh) await recordAudit(transaction, { actor, action: "ledger.gap_closed", organizationId, subject: gapId });
    return { orgId: organizationId, gapId, repeated: !fresh };
  });
}

type LedgerList = Awaited<ReturnType<typeof list>>;

async function list({ database, warn }: CommandContext, orgId: string, { limit, since, kind }: ListOptions) {
  await requireOrganization(database, orgId);
  const newest = await readNewestEntries(database, orgId, { since, kind, limit: limit + 1 });
  if (newest.length > limit) warn(`There are more than the newest ${limit}. Use --limit, at most ${entriesMax}.`);
  return { orgId, entries: newest.slice(-limit) };
}

/** The columns that fit a terminal. An entry has the id of a search, or of a grant. */
function toText({ entries }: LedgerList, format: FormatResult): string {
  const shown = entries.map(({ at, kind, amountMils, balanceAfterMils: balanceMils, requestId, grantId, reason }) => {
    return { at, kind, amountMils, balanceMils, id: requestId ?? grantId, reason };
  });
  return format({ entries: shown });
}

/** A text that a spreadsheet would run as a formula is escaped. */
function toCsv({ entries }: LedgerList): string {
  const rows = entries.map(({ at, ...entry }) => ({ at: at.toISOString(), ...entry }));
  return stringify(rows, { columns: [...csvColumns], header: true, escape_formulas: true });
}

const csvColumns = [
  "at",
  "version",
  "kind",
  "amountMils",
  "balanceAfterMils",
  "requestId",
  "tokenId",
  "grantId",
  "reason",
] as const;

/** What `ledger verify` found. */
export interface VerificationReport extends EntryCounts {
  ok: boolean;
  /** False if Redis was unreachable and only Postgres was checked. */
  redisChecked: boolean;
  violations: Violation[];
}

/**
 * Checks the invariants of the money while the service runs, and lists at most twenty violations of each. The usual check costs
 * what is new: entries after the checkpoint of their organization, and refunds of the last two days.
 * @param options.isFull whether to check everything that there is: only then an old entry that was altered is found, or a key that
 * has paid without a charge.
 */
export async function verifyLedger(
  database: Database,
  redis: Redis | undefined,
  { isFull = false }: { isFull?: boolean } = {},
): Promise<VerificationReport> {
  const found = new FoundViolations();
  await verifyDecisions(database, { isFull, found });
  if (isFull) await verifyKeys(database, found);
  const counts = await verifyEntries(database, { isFull, found });
  if (redis) found.add(...(await verifyRedis(database, redis)));
  return { ok: found.list.length === 0, ...counts, redisChecked: redis !== undefined, violations: found.list };
}

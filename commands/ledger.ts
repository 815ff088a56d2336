import { type Command, Option } from "commander";
import { stringify } from "csv-stringify/sync";
import { refuseCluster, whenReady } from "../shared/redis/connect.ts";
import { type EntryKind, entryKinds, readNewestEntries } from "../api/ledger/ledger-pages.ts";
import { parseId, parseTime, parseWholeNumber } from "./argument-parsers.ts";
import { formatResult } from "./format-result.ts";
import { verifyLedger } from "./ledger-verify.ts";
import { requireOrganization } from "./refusals.ts";
import { type CommandContext, exitCodes, type RunCommand } from "./run-command.ts";

const redisTimeoutMs = 2_000;
const entriesDefault = 100;
const entriesMax = 100_000;

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
    .description("check every invariant of all organizations while the service runs; exit 4 if one is broken")
    .action(() =>
      run(
        async ({ database, redis, warn }) => {
          const isReachable = await whenReady(redis, redisTimeoutMs);
          if (isReachable) await refuseCluster(redis);
          else warn("Redis is unreachable: only Postgres was checked.");
          return verifyLedger(database, isReachable ? redis : undefined);
        },
        { exitCode: ({ ok }) => (ok ? 0 : exitCodes.booksBroken) },
      ),
    );
}

type LedgerList = Awaited<ReturnType<typeof list>>;

async function list({ database, warn }: CommandContext, orgId: string, { limit, since, kind }: ListOptions) {
  await requireOrganization(database, orgId);
  const newest = await readNewestEntries(database, orgId, { since, kind, limit: limit + 1 });
  if (newest.length > limit) warn(`There are more than the newest ${limit}. Use --limit, at most ${entriesMax}.`);
  return { orgId, entries: newest.slice(-limit) };
}

/** The columns that fit a terminal. An entry has the id of a search, or of a grant. */
function toText({ entries }: LedgerList, columns: number): string {
  const shown = entries.map(({ at, kind, amountMils, balanceAfterMils: balanceMils, requestId, grantId, reason }) => {
    return { at, kind, amountMils, balanceMils, id: requestId ?? grantId, reason };
  });
  return formatResult({ entries: shown }, columns);
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

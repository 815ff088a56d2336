import type { Command } from "commander";
import { inTransaction } from "../shared/database/transaction.ts";
import { changeLimitsRecorded } from "../api/organizations/audited-changes.ts";
import { type changeLimits, type LimitChange, readOwnLimits } from "../api/organizations/limits.ts";
import { DayLimitRequired, type Excess, LimitsTooHigh } from "../api/tokens/token-family.ts";
import { parseId } from "./argument-parsers.ts";
import { parseMilsOrNone } from "./money.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { CommandRefused } from "./refusals.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

type Owner = Parameters<typeof changeLimits>[1];
type Limit = number | "none";
type LimitOptions = { day?: Limit; month?: Limit };

export function addLimitCommands(program: Command, run: RunCommand): void {
  const limit = program.command("limit").description("spending limits: mils per UTC day and per calendar month");
  const add = (name: string, owner: Owner, prefix: "org" | "tok", whose: string) =>
    limit
      .command(name)
      .description(
        `show or change the spending limits of ${whose}, and show its spending; every API applies a change within two seconds`,
      )
      .argument(`<${name}>`, `the ${owner}'s id`, parseId(prefix))
      .option("--day <mils>", "the limit for a UTC day, or none", parseMilsOrNone(program, 0))
      .option("--month <mils>", "the limit for a calendar month, or none", parseMilsOrNone(program, 0))
      .action((id: string, options: LimitOptions) => run((context) => apply(context, owner, id, options)));
  add("org", "organization", "org", "an organization");
  add("token", "token", "tok", "a token");
}

async function apply(context: CommandContext, owner: Owner, id: string, { day, month }: LimitOptions) {
  const isChange = day !== undefined || month !== undefined;
  const shown = isChange
    ? await change(context, owner, id, { dayMils: milsOf(day), monthMils: milsOf(month) })
    : await readOwnLimits(context.database, owner, id);
  if (!shown) throw new CommandRefused(`There is no ${owner} ${id}.`);
  const { organizationId: orgId, ...limits } = shown;
  return owner === "token" ? { orgId, tokenId: id, ...limits } : { orgId, ...limits };
}

async function change(context: CommandContext, owner: Owner, id: string, wanted: LimitChange) {
  const changed = await inTransaction(context.database, (transaction) =>
    changeLimitsRecorded(transaction, { actor: context.actor }, { owner, id }, wanted),
  ).catch((error: unknown) => {
    if (error instanceof DayLimitRequired) throw new CommandRefused(dayLimitRequired);
    throw error instanceof LimitsTooHigh ? new CommandRefused(error.excesses.map(tooHigh).join(" ")) : error;
  });
  if (changed) await announceIdentityChange(context);
  return changed;
}

export const dayLimitRequired = "--day: expected an amount. A token with the scope door always has a daily limit.";

const tooHigh = ({ field, boundMils, tokenId }: Excess) =>
  `--${field}: expected at most ${boundMils} mils, the limit of ${tokenId}, which made this token.`;

const milsOf = (limit: Limit | undefined) => (limit === "none" ? null : limit);

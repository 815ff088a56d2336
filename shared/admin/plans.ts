import { type Command, Option } from "commander";
import { recordAudit } from "../audit/audit.ts";
import { listPlans, lockPlan, type Operation, operations, setPlan } from "../credits/plans.ts";
import { inTransaction } from "../database/transaction.ts";
import { depthMax, organicPerPage, pagesOf } from "../query/depth.ts";
import { assignPlan } from "../organizations/organizations.ts";
import { parseId, parseList, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { refuseErased } from "./refuse-erased.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const int4Max = 2_147_483_647;

// Amounts stay below 2^53, also for the deepest search.
const pricePerPageMilsMax = Math.floor(Number.MAX_SAFE_INTEGER / pagesOf(depthMax));

interface PlanOptions {
  /** Either this or `pricePerPage`. */
  price?: number;
  pricePerPage?: number;
  maxDepth?: number;
  limit: number;
  window: number;
  concurrency: number;
  operations: Operation[];
}

export function addPlanCommands(program: Command, run: RunCommand): void {
  const plan = program.command("plan").description("plans: price, rate window, concurrency and operations");
  plan
    .command("set")
    .description("create a plan or change its terms; every API applies them within two seconds")
    .argument("<code>", "a short lower-case word, such as free")
    .option("--price <mils>", "price of a search of any depth", parseWholeNumber(0))
    .addOption(
      new Option("--price-per-page <mils>", `instead of --price: price of each ${organicPerPage} results of a search`)
        .argParser(parseWholeNumber(0, pricePerPageMilsMax))
        .conflicts("price"),
    )
    .option("--max-depth <n>", "largest depth of a search (default: any)", parseWholeNumber(1, depthMax))
    .requiredOption("--limit <n>", "requests per window", parseWholeNumber(1, int4Max))
    .requiredOption("--window <seconds>", "length of the window", parseWholeNumber(1, 86_400))
    .requiredOption("--concurrency <n>", "searches in flight at a time", parseWholeNumber(1, int4Max))
    .option("--operations <list>", `comma list of ${operations.join(" and ")}`, parseList(operations), [...operations])
    .action((code: string, options: PlanOptions, command: Command) => {
      const priceMils = options.price ?? options.pricePerPage;
      if (priceMils === undefined)
        command.error("error: one of the options '--price <mils>' and '--price-per-page <mils>' is required");
      return run((context) => set(context, code, { ...options, priceMils }));
    });
  plan
    .command("assign")
    .description("move an organization to another plan; every API applies it within two seconds")
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<code>", "the plan's code")
    .action((orgId: string, code: string) => run((context) => assign(context, orgId, code)));
  plan
    .command("list")
    .description("list all plans")
    .action(() => run(async ({ database }) => ({ plans: await listPlans(database) })));
}

async function set(context: CommandContext, code: string, options: PlanOptions & { priceMils: number }) {
  const { priceMils, pricePerPage, maxDepth } = options;
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(code)) {
    throw new CommandRefused(
      "A plan's code is a lower-case letter and up to 31 more lower-case letters, digits, - or _.",
    );
  }
  const plan = await inTransaction(context.database, async (transaction) => {
    const before = await lockPlan(transaction, code);
    const after = await setPlan(transaction, {
      code,
      priceMils,
      ...(pricePerPage !== undefined && { pricePerPageMils: pricePerPage }),
      ...(maxDepth !== undefined && { maxDepth }),
      windowLimit: options.limit,
      windowSeconds: options.window,
      concurrency: options.concurrency,
      operations: options.operations,
    });
    const values = { before: before && { ...before }, after: { ...after } };
    await recordAudit(transaction, context.actor, { action: "plan.set", subject: code, ...values });
    return after;
  });
  await announceIdentityChange(context);
  return plan;
}

async function assign(context: CommandContext, orgId: string, code: string) {
  await inTransaction(context.database, async (transaction) => {
    await refuseErased(transaction, orgId);
    const assigned = await assignPlan(transaction, orgId, code);
    if (!assigned) throw new CommandRefused(`There is no organization ${orgId}, or no plan "${code}".`);
    const values = { before: { plan: assigned.oldPlanCode }, after: { plan: code } };
    const entry = { action: "plan.assigned", organizationId: orgId, subject: code, ...values } as const;
    await recordAudit(transaction, context.actor, entry);
  });
  await announceIdentityChange(context);
  return { orgId, plan: code };
}

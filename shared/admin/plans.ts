import { type Command, InvalidArgumentError } from "commander";
import type { Context } from "../context.ts";
import { listPlans, type Operation, operations, setPlan } from "../credits/plans.ts";
import { assignPlan } from "../organizations/organizations.ts";
import { parseId, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { runCommand } from "./run-command.ts";

const int4Max = 2_147_483_647;

interface PlanOptions {
  price: number;
  limit: number;
  window: number;
  concurrency: number;
  operations: Operation[];
}

export function addPlanCommands(program: Command): void {
  const plan = program.command("plan").description("plans: price, rate window, searches in flight, operations");
  plan
    .command("set")
    .description("create a plan or change its terms; running processes follow within two seconds")
    .argument("<code>", "a short lower-case word, such as free")
    .requiredOption("--price <mils>", "mils for a search", parseWholeNumber(0))
    .requiredOption("--limit <n>", "requests in a window", parseWholeNumber(1, int4Max))
    .requiredOption("--window <seconds>", "length of a window", parseWholeNumber(1, 86_400))
    .requiredOption("--concurrency <n>", "searches in flight at once", parseWholeNumber(1, int4Max))
    .option("--operations <list>", `comma list of ${operations.join(" and ")}`, readOperations, [...operations])
    .action((code: string, options: PlanOptions) => runCommand((context) => set(context, code, options)));
  plan
    .command("assign")
    .description("move an organization to a plan; running processes follow within two seconds")
    .argument("<org>", "the organization's id", parseId("org"))
    .argument("<code>", "the plan's code")
    .action((orgId: string, code: string) => runCommand((context) => assign(context, orgId, code)));
  plan
    .command("list")
    .description("list all plans")
    .action(() => runCommand(async ({ database }) => ({ plans: await listPlans(database) })));
}

async function set(context: Context, code: string, options: PlanOptions) {
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(code)) {
    throw new CommandRefused("A plan's code is a lower-case letter and up to 31 more letters, digits, - or _.");
  }
  const plan = await setPlan(context.database, {
    code,
    priceMils: options.price,
    windowLimit: options.limit,
    windowSeconds: options.window,
    concurrency: options.concurrency,
    operations: options.operations,
  });
  await announceIdentityChange(context.redis);
  return plan;
}

async function assign(context: Context, orgId: string, code: string) {
  if (!(await assignPlan(context.database, orgId, code))) {
    throw new CommandRefused(`There is no organization ${orgId}, or no plan "${code}".`);
  }
  await announceIdentityChange(context.redis);
  return { orgId, plan: code };
}

function readOperations(text: string): Operation[] {
  return text.split(",").map((name) => {
    const known = operations.find((operation) => operation === name.trim());
    if (!known) throw new InvalidArgumentError(`expected a comma list of ${operations.join(", ")}`);
    return known;
  });
}

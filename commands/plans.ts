import { type Command, Option } from "commander";
import { recordAudit } from "../shared/audit/audit.ts";
import type { ProviderName } from "../shared/config.ts";
import {
  listPlans,
  lockPlan,
  type Operation,
  operations,
  type Plan,
  searchPriceMils,
  setPlan,
  unpaidCallsMax,
} from "../shared/credits/plans.ts";
import { inTransaction } from "../shared/database/transaction.ts";
import { assignPlan } from "../shared/organizations/organizations.ts";
import { depthMax, organicPerPage, pagesOf } from "../shared/query/depth.ts";
import { searchCostMicroUsd } from "../worker/providers/prices.ts";
import { parseId, parseList, parsePlanCode, parseWholeNumber, parseWholeNumberOrNone } from "./argument-parsers.ts";
import type { FormatResult } from "./format-result.ts";
import { parseMils, parseMilsOrNone } from "./money.ts";
import { announceIdentityChange } from "./publish-changes.ts";
import { CommandRefused, refuseErased } from "./refusals.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const int4Max = 2_147_483_647;
const microUsdPerMil = 1_000;

// Amounts stay below 2^53, also for the deepest search.
const pricePerPageMilsMax = Math.floor(Number.MAX_SAFE_INTEGER / pagesOf(depthMax));

/** The terms to set; those of a plan that exists stay as they are where nothing is given. */
interface PlanOptions {
  /** Either this or `pricePerPage`. */
  price?: number;
  pricePerPage?: number;
  cachedPrice?: number | "none";
  maxDepth?: number | "none";
  limit?: number;
  window?: number;
  concurrency?: number;
  unpaidCalls?: number;
  operations?: Operation[];
}

export function addPlanCommands(program: Command, run: RunCommand): void {
  const plan = program.command("plan").description("plans: price, rate window, concurrency and operations");
  plan
    .command("set")
    .summary("create a plan, or change its terms")
    .description(
      "Create a plan, or change the given terms of an existing one. A new plan needs a price, --limit, --window and --concurrency. Every API applies the terms within two seconds. No command changes the starting grant. A price below the cost at a provider of SERP_PROVIDERS, and a budget of unpaid calls below the calls of the searches in flight, are accepted with a warning.",
    )
    .argument("<code>", "a short lower-case word, such as free", parsePlanCode)
    .option("--price <mils>", "price of a search of any depth", parseMils(program, 0))
    .addOption(
      new Option("--price-per-page <mils>", `instead of --price: price per ${organicPerPage} results of a search`)
        .argParser(parseMils(program, 0, pricePerPageMilsMax))
        .conflicts("price"),
    )
    .option(
      "--cached-price <mils>",
      "price of a search, or of each page, that the organization's own kept answer answers, or none for the whole price (default for a new plan: none)",
      parseMilsOrNone(program, 0),
    )
    .option(
      "--max-depth <n>",
      "maximum depth of a search, or none (default for a new plan: none)",
      parseWholeNumberOrNone(1, depthMax),
    )
    .option("--limit <n>", "requests per window", parseWholeNumber(1, int4Max))
    .option("--window <seconds>", "length of the window", parseWholeNumber(1, 86_400))
    .option("--concurrency <n>", "searches in flight at a time", parseWholeNumber(1, int4Max))
    .option(
      "--unpaid-calls <n>",
      "provider calls that callers may leave unpaid per hour (default for a new plan: ten per search in flight)",
      parseWholeNumber(1, unpaidCallsMax),
    )
    .option(
      "--operations <list>",
      `comma list of ${operations.join(" and ")} (default for a new plan: both)`,
      parseList(operations),
    )
    .action((code: string, options: PlanOptions, command: Command) => {
      if (Object.keys(options).length === 0) command.error("error: no term given");
      return run((context) => set(context, code, options), { toText: formatTerms });
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

async function set(context: CommandContext, code: string, options: PlanOptions) {
  const plan = await inTransaction(context.database, async (transaction) => {
    const before = await lockPlan(transaction, code);
    const after = await setPlan(transaction, termsOf(code, options, before));
    const values = { before: before && { ...before }, after: { ...after } };
    await recordAudit(transaction, { actor: context.actor, action: "plan.set", subject: code, ...values });
    return after;
  });
  await announceIdentityChange(context);
  const margins = marginsOf(plan, context.config.SERP_PROVIDERS);
  for (const loss of margins.belowCost) context.warn(`Warning: ${describeLoss(code, loss)}.`);
  for (const provider of margins.unknownCost) context.warn(`The cost of a search at ${provider} is unknown.`);
  warnOfSmallBudget(context, plan);
  return { ...plan, ...margins };
}

/** A caller that loses its network leaves all its searches at once. Beyond the budget it would be refused for hours. */
function warnOfSmallBudget({ warn }: CommandContext, { code, concurrency, unpaidCalls, maxDepth = depthMax }: Plan) {
  const calls = concurrency * pagesOf(maxDepth);
  if (unpaidCalls >= Math.min(calls, unpaidCallsMax)) return;
  warn(
    `Warning: plan ${code} allows ${unpaidCalls} unpaid provider calls an hour, but its ${concurrency} searches in flight can make ${calls} calls. See --unpaid-calls.`,
  );
}

/** The terms alone: people read on stderr what is below cost. */
function formatTerms(result: Plan & Margins, format: FormatResult): string {
  const { belowCost: _, unknownCost: __, ...terms } = result;
  return format(terms);
}

/** @throws {CommandRefused} if a term is missing for a new plan. */
function termsOf(code: string, options: PlanOptions, before: Plan | undefined) {
  const price =
    priceOf(options) ?? (before && { priceMils: before.priceMils, pricePerPageMils: before.pricePerPageMils });
  const { limit = before?.windowLimit, window = before?.windowSeconds } = options;
  const { concurrency = before?.concurrency, maxDepth = before?.maxDepth ?? "none" } = options;
  if (!price || limit === undefined || window === undefined || concurrency === undefined)
    throw new CommandRefused(
      `There is no plan "${code}" yet. A new plan needs --price or --price-per-page, --limit, --window and --concurrency.`,
    );
  const { cachedPrice = before?.cachedPriceMils ?? "none" } = options;
  if (cachedPrice !== "none" && cachedPrice > price.priceMils)
    throw new CommandRefused(
      `The cached price of ${cachedPrice} mils would be above the price of ${price.priceMils} mils. Set --cached-price.`,
    );
  return {
    code,
    ...price,
    cachedPriceMils: cachedPrice === "none" ? undefined : cachedPrice,
    maxDepth: maxDepth === "none" ? undefined : maxDepth,
    windowLimit: limit,
    windowSeconds: window,
    concurrency,
    unpaidCalls: options.unpaidCalls ?? before?.unpaidCalls,
    operations: options.operations ?? before?.operations ?? [...operations],
  };
}

/** The price as a whole: that of any depth, or that of each page. Undefined if none is given. */
function priceOf({ price, pricePerPage }: PlanOptions) {
  if (pricePerPage !== undefined) return { priceMils: pricePerPage, pricePerPageMils: pricePerPage };
  return price === undefined ? undefined : { priceMils: price, pricePerPageMils: undefined };
}

async function assign(context: CommandContext, orgId: string, code: string) {
  await inTransaction(context.database, async (transaction) => {
    await refuseErased(transaction, orgId);
    const former = await assignPlan(transaction, orgId, code);
    if (!former) throw new CommandRefused(`There is no organization ${orgId}, or no plan "${code}".`);
    const values = { before: { plan: former.plan }, after: { plan: code } };
    const { actor } = context;
    await recordAudit(transaction, { actor, action: "plan.assigned", organizationId: orgId, subject: code, ...values });
  });
  await announceIdentityChange(context);
  return { orgId, plan: code };
}

/** How the price of a plan compares with what searches cost at the providers that may answer them. */
interface Margins {
  /** Providers at which searches cost more than they are sold for. */
  belowCost: Loss[];
  /** Providers where a search has no published price. */
  unknownCost: ProviderName[];
}

interface Loss {
  provider: ProviderName;
  /** The smallest and the largest depth of the searches that cost more than they are sold for. */
  fromDepth: number;
  depth: number;
  /** Of a search of the largest one. */
  priceMils: number;
  costMils: number;
}

export function marginsOf(plan: Plan, configured: readonly ProviderName[]): Margins {
  const providers = plan.operations.includes("serp.search") ? configured : [];
  return {
    belowCost: providers.flatMap((provider) => lossAt(provider, plan) ?? []),
    unknownCost: providers.filter((provider) => searchCostMicroUsd(provider, 1) === undefined),
  };
}

function lossAt(provider: ProviderName, plan: Plan): Loss | undefined {
  const depthOfPlan = plan.maxDepth ?? depthMax;
  const losing = Array.from({ length: pagesOf(depthOfPlan) }, (_, before) => {
    const depth = Math.min(depthOfPlan, (before + 1) * organicPerPage);
    const costMils = (searchCostMicroUsd(provider, before + 1) ?? 0) / microUsdPerMil;
    return { fromDepth: before * organicPerPage + 1, depth, priceMils: searchPriceMils(plan, { depth }), costMils };
  }).filter((search) => search.priceMils < search.costMils);
  const [first, deepest] = [losing[0], losing.at(-1)];
  return first && deepest && { provider, ...deepest, fromDepth: first.fromDepth };
}

/** The loss as a sentence about a plan, without its full stop. */
export const describeLoss = (code: string, { provider, fromDepth, depth, priceMils, costMils }: Loss) =>
  `plan ${code} sells a search of depth ${depth} for ${priceMils} mils, but it costs ${costMils} mils at ${provider}; the plan loses money from depth ${fromDepth} on`;

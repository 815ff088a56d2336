import type { ProviderName } from "../shared/config.ts";
import { type Plan, searchPriceMils } from "../shared/credits/plans.ts";
import { searchCostMicroUsd } from "../worker/providers/prices.ts";
import { depthMax, organicPerPage, pagesOf } from "../shared/query/depth.ts";

const microUsdPerMil = 1_000;

/** How the price of a plan compares with what searches cost at the providers that may answer them. */
export interface Margins {
  /** Providers at which searches cost more than they are sold for. */
  belowCost: Loss[];
  /** Providers where a search has no published price. */
  unknownCost: ProviderName[];
}

export interface Loss {
  provider: ProviderName;
  /** The smallest and the largest depth of the searches that cost more than they are sold for. */
  fromDepth: number;
  depth: number;
  /** Of a search of the largest one. */
  priceMils: number;
  costMils: number;
}

export function marginsOf(plan: Plan, configured: readonly ProviderName[]): Margins {
  const providers = plan.operations.includes("serp.search") ? [...new Set(configured)] : [];
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

import type { ProviderName } from "../../shared/config.ts";
import { listPlans } from "../../shared/credits/plans.ts";
import type { Database } from "../../shared/database/pool.ts";
import { describeLoss, marginsOf } from "../plan-margins.ts";
import { type Finding, ok, warning } from "./finding.ts";

const advice =
  "Give it a higher price, --price-per-page or --max-depth: docs/operating/providers.md#prices-and-margin-by-depth";

/** Plans that sell searches below what the configured providers take for them. @throws if Postgres does not answer. */
export async function examinePlans(database: Database, providers: readonly ProviderName[]): Promise<Finding[]> {
  const margins = (await listPlans(database)).map((plan) => ({ plan, ...marginsOf(plan, providers) }));
  const losses = margins.flatMap(({ plan, belowCost }) =>
    belowCost.map((loss) => warning("plans", describeLoss(plan.code, loss), advice)),
  );
  const unknown = [...new Set(margins.flatMap(({ unknownCost }) => unknownCost))];
  const known = losses.length > 0 ? losses : [ok("plans", "no plan sells a search below a known cost")];
  return [...known, ...unknown.map((provider) => ok("plans", `the cost of a search at ${provider} is unknown`))];
}

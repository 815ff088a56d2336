import { readUnpaidCalls } from "../../../shared/credits/unpaid-calls.ts";
import { listPlans } from "../../../shared/credits/plans.ts";
import { depthMax, pagesOf } from "../../../shared/query/depth.ts";
import type { Service } from "../../harness/processes/service.ts";

/** Organizations that left more provider calls unpaid than their plan allows, apart from those that were in flight then. */
export async function tooManyUnpaid(
  { database, redis }: Service,
  organizationIds: readonly string[],
): Promise<string[]> {
  const plans = new Map((await listPlans(database)).map((plan) => [plan.code, plan]));
  const { rows } = await database.query("select id, plan_code from organizations where id = any ($1)", [
    organizationIds,
  ]);
  const found = await Promise.all(
    rows.map(async ({ id, plan_code: code }) => {
      const plan = plans.get(code);
      if (!plan) return [`${id} has no plan`];
      const calls = await readUnpaidCalls(redis, { organizationId: id, plan });
      // Single tokens may exceed their half by a second budget.
      const callsMax = 2 * plan.unpaidCalls + plan.concurrency * pagesOf(depthMax);
      return calls > callsMax ? [`${id} left ${calls} provider calls unpaid, with a budget of ${callsMax}`] : [];
    }),
  );
  return found.flat();
}

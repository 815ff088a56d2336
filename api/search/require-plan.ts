import { CallerError } from "../../shared/errors.ts";
import type { SearchRequest } from "./search-request.ts";

/**
 * Checks that the plan of the caller includes the search. Nothing is held or counted yet.
 * @throws {CallerError} `plan_required` with what would help.
 */
export function requirePlan({ caller, query }: SearchRequest): void {
  const { code: plan, maxDepth } = caller.plan;
  if (caller.suspended)
    throw new CallerError("plan_required", { plan, action: "contact_operator", reason: "suspended" });
  if (!caller.plan.operations.includes("serp.search"))
    throw new CallerError("plan_required", { plan, action: "upgrade" });
  if (maxDepth !== undefined && query.depth > maxDepth)
    throw new CallerError("plan_required", { plan, action: "upgrade", reason: "max_depth", maxDepth });
}

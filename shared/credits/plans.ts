import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";
import { depthMax, pagesOf } from "../query/depth.ts";
import type { Query } from "../query/query.ts";

/** The operations that a plan can include. */
export const operations = ["serp.search", "usage.get"] as const;
export type Operation = (typeof operations)[number];

/** The largest budget of unpaid calls, in calls an hour. */
export const unpaidCallsMax = 1_000_000;

/** A number that a plan may lack. */
const ifSet = z
  .number()
  .nullable()
  .transform((value) => value ?? undefined)
  .optional();

const planRow = rowOf({
  code: z.string(),
  /** The price of a search; under a price per page, that of a search of one page. */
  priceMils: z.number(),
  /** The price of each page of results that the depth asks for. Undefined where all depths have one price. */
  pricePerPageMils: ifSet,
  /** What a search is charged that a kept answer answers, in the unit of the price. Undefined: the whole price. */
  cachedPriceMils: ifSet,
  /** The largest depth of a search. Undefined: any. */
  maxDepth: ifSet,
  windowLimit: z.number(),
  windowSeconds: z.number(),
  concurrency: z.number(),
  /** The provider calls that callers may leave unpaid in an hour; see unpaid-calls.ts. */
  unpaidCalls: z.number(),
  startingGrantMils: z.number(),
  operations: z.array(z.enum(operations)),
});
/** The terms of an organization's searches. Plans are rows, so operators change them without a release. */
export type Plan = z.infer<typeof planRow>;

/** The columns that {@link readPlan} reads, for statements that join the table as `p`. */
export const planColumns =
  "p.code, coalesce(p.price_mils, p.price_per_page_mils) as price_mils, p.price_per_page_mils, p.cached_price_mils, p.max_depth, p.window_limit, p.window_seconds, p.concurrency, " +
  "p.unpaid_calls_per_hour as unpaid_calls, p.starting_grant_mils, p.operations";

export const readPlan = (row: unknown): Plan => planRow.parse(row);

/** What a search costs on this plan, in mils: for the depth that it asks for, however many results there are. */
export function searchPriceMils({ priceMils, pricePerPageMils }: Plan, { depth }: Pick<Query, "depth">): number {
  return pricePerPageMils === undefined ? priceMils : pricePerPageMils * pagesOf(depth);
}

/** What a search costs that a kept answer answers, in mils: never more than {@link searchPriceMils}. */
export function cachedPriceMils({ cachedPriceMils: mils, ...plan }: Plan, query: Pick<Query, "depth">): number {
  if (mils === undefined) return searchPriceMils(plan, query);
  return plan.pricePerPageMils === undefined ? mils : mils * pagesOf(query.depth);
}

export async function listPlans(database: Database): Promise<Plan[]> {
  const { rows } = await database.query(`select ${planColumns} from plans p order by p.code`);
  return rows.map(readPlan);
}

/** Reads a plan, which nothing else changes until the end of the transaction. */
export async function lockPlan(transaction: Querying, code: string): Promise<Plan | undefined> {
  const { rows } = await transaction.query(`select ${planColumns} from plans p where p.code = $1 for no key update`, [
    code,
  ]);
  return rows[0] ? readPlan(rows[0]) : undefined;
}

/** The terms of a plan that operators set. */
type PlanTerms = Omit<Plan, "startingGrantMils" | "unpaidCalls"> & {
  /** Undefined: as it was; for a new plan the calls of as many searches of the largest depth as may be in flight. */
  unpaidCalls?: number | undefined;
};

/** Creates a plan or changes all its terms but the starting grant. */
export async function setPlan(database: Querying, plan: PlanTerms): Promise<Plan> {
  const { rows } = await database.query(
    `insert into plans as p
       (code, price_mils, window_limit, window_seconds, concurrency, operations, price_per_page_mils, max_depth,
        unpaid_calls_per_hour, cached_price_mils)
     values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9::integer, $10), $11)
     on conflict (code) do update set price_mils = excluded.price_mils, window_limit = excluded.window_limit,
       window_seconds = excluded.window_seconds, concurrency = excluded.concurrency, operations = excluded.operations,
       price_per_page_mils = excluded.price_per_page_mils, max_depth = excluded.max_depth,
       cached_price_mils = excluded.cached_price_mils, unpaid_calls_per_hour = coalesce($9::integer, p.unpaid_calls_per_hour)
     returning ${planColumns}`,
    [
      plan.code,
      plan.pricePerPageMils === undefined ? plan.priceMils : null,
      plan.windowLimit,
      plan.windowSeconds,
      plan.concurrency,
      plan.operations,
      plan.pricePerPageMils,
      plan.maxDepth,
      plan.unpaidCalls,
      Math.min(plan.concurrency * pagesOf(depthMax), unpaidCallsMax),
      plan.cachedPriceMils,
    ],
  );
  return readPlan(rows[0]);
}

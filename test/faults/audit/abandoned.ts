import { z } from "zod";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import type { Service } from "../../harness/processes/service.ts";

const planRow = z.object({ id: z.string(), concurrency: z.number() });

/** An organization abandons at most as many searches as its plan allows in flight, and those that were in flight then. */
export async function tooManyAbandoned(
  { database, redis }: Service,
  organizationIds: readonly string[],
): Promise<string[]> {
  const { rows } = await database.query(
    "select o.id, p.concurrency from organizations o join plans p on p.code = o.plan_code where o.id = any ($1)",
    [organizationIds],
  );
  const found = await Promise.all(
    rows.map(async (row) => {
      const { id, concurrency } = planRow.parse(row);
      const abandoned = await redis.zcard(keysOf(id).abandoned);
      return abandoned > 2 * concurrency
        ? [`${id} abandoned ${abandoned} searches, its plan allows ${concurrency}`]
        : [];
    }),
  );
  return found.flat();
}

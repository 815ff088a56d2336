import { z } from "zod";
import type { Database } from "../database/pool.ts";

/**
 * Makes the days of the search log that come next, and removes those that are older than so many days; with 0 all of them.
 * @returns how many days it removed.
 */
export async function rotateSearchLog(database: Database, days: number): Promise<number> {
  const { rows } = await database.query("select rotate_search_log($1) as removed", [days]);
  return z.object({ removed: z.number() }).parse(rows[0]).removed;
}

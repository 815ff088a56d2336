import type { Database } from "../database/pool.ts";
import { requestId, timeOfId } from "../ids.ts";
import { type LoggedSearch, loggedColumns, readLogged } from "./logged-search.ts";

/** Reads what the log has of these searches of an organization: nothing of an id that this service does not make. @returns by request id. */
export async function readSearches(
  database: Database,
  organizationId: string,
  requestIds: readonly string[],
): Promise<Map<string, LoggedSearch>> {
  const ids = requestIds.filter((id) => requestId.safeParse(id).success);
  if (ids.length === 0) return new Map();
  const { rows } = await database.query({
    name: "read_searches",
    // Lateral with a limit: each search is looked up in the index of its day.
    text: `select s.*
           from unnest($2::timestamptz[], $3::text[]) as a (at, request_id)
           cross join lateral (
             select ${loggedColumns}
             from search_log l left join tokens t on t.id = l.token_id
             where l.organization_id = $1 and l.at = a.at and l.request_id = a.request_id
             limit 1) s`,
    values: [organizationId, ids.map(timeOfId), ids],
  });
  return new Map(rows.map(readLogged).map((search) => [search.requestId, search]));
}

/** A place in the log of an organization: behind this search, from the newest to the oldest. */
export type LogPlace = Pick<LoggedSearch, "at" | "requestId">;

/** Reads the rows of an organization in their order, from the first one after a place. */
export async function readSearchLogPage(
  database: Database,
  organizationId: string,
  { after, limit }: { after: LogPlace | undefined; limit: number },
): Promise<LoggedSearch[]> {
  const { rows } = await database.query(
    `select ${loggedColumns}
     from search_log l left join tokens t on t.id = l.token_id
     where l.organization_id = $1 and l.at >= $2 and (l.at, l.request_id) > ($2, $3)
     order by l.at, l.request_id limit $4`,
    [organizationId, after?.at ?? "-infinity", after?.requestId ?? "", limit],
  );
  return rows.map(readLogged);
}

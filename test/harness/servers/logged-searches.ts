import type { Database } from "../../../shared/database/pool.ts";
import { loggedColumns, readLogged } from "../../../shared/search-log/read-search-log.ts";

/** The rows that the search log has of an organization, oldest first. */
export async function loggedSearches(database: Database, organizationId: string) {
  const { rows } = await database.query(
    `select ${loggedColumns} from search_log l left join tokens t on t.id = l.token_id
     where l.organization_id = $1 order by l.at, l.request_id`,
    [organizationId],
  );
  return rows.map(readLogged);
}

import { z } from "zod";
import { type HistoryEntry, type HistoryFilter, readSearchEntries, scannedMax, type TimeSpan } from "./history.ts";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import { timeOfId } from "../../shared/ids.ts";
import {
  loggedColumns,
  type LoggedSearch,
  type LogPlace,
  readLogged,
} from "../../shared/search-log/read-search-log.ts";

const matchesPerRead = 1_000;

/** An entry of the history with what was searched, as far as the search log has it. */
export type SearchEntry = HistoryEntry & { search?: LoggedSearch | undefined };

/** What to find. An undefined field finds every search. */
interface WantedSearches extends TimeSpan {
  /** A part of the keyword, in small or capital letters as far as the locale of the database knows them. */
  keyword: string | undefined;
  tokenId: string | undefined;
  filter: HistoryFilter;
  /** Only searches before this one, by request id. */
  before: string | undefined;
  limit: number;
}

export interface FoundSearches {
  entries: SearchEntry[];
  /** The request id before which older searches may match; undefined if there are none. */
  older: string | undefined;
  /** Whether the search ended because it had looked at enough rows, and not because it had found enough. */
  isCutShort: boolean;
}

/**
 * Finds searches of an organization in the search log, newest first. Each call looks at 10,000 rows at most, so a keyword that
 * no search has takes no longer.
 */
export async function findSearches(
  database: Database,
  organizationId: string,
  wanted: WantedSearches,
): Promise<FoundSearches> {
  const { filter, limit, since, until } = wanted;
  if (filter === "grants") return { entries: [], older: undefined, isCutShort: false }; // They are no searches.
  // No id is before the empty one.
  let from: LogPlace | undefined = until && { at: until, requestId: "" };
  if (wanted.before !== undefined) from = placeOf(wanted.before);
  const to = await readLastScanned(database, organizationId, { from, since });
  const entries: SearchEntry[] = [];
  // Without a filter every match is an entry, so the first read is enough for a page.
  for (let rowsMax = limit + 1; ; rowsMax = matchesPerRead) {
    const matches = await readMatches(database, organizationId, { ...wanted, from, to, limit: rowsMax });
    const searches = new Map(matches.map((search) => [search.requestId, search]));
    for (const entry of await readSearchEntries(database, organizationId, [...searches.keys()], filter))
      entries.push({ ...entry, search: searches.get(requestIdOf(entry)) });
    if (entries.length > limit) {
      const shown = entries.slice(0, limit);
      return { entries: shown, older: requestIdOf(shown.at(-1)), isCutShort: false };
    }
    from = matches.at(-1);
    if (matches.length < rowsMax || !from) return { entries, older: to?.requestId, isCutShort: to !== undefined };
  }
}

const requestIdOf = (entry: HistoryEntry | undefined) => (entry && "requestId" in entry ? entry.requestId : "");

const placeOf = (requestId: string): LogPlace => ({ at: timeOfId(requestId), requestId });

const placeRow = rowOf({ at: z.date(), requestId: z.string() });

/** The last row that may be looked at; undefined if the log of the organization has fewer in the span. */
async function readLastScanned(
  database: Database,
  organizationId: string,
  { from, since }: { from: LogPlace | undefined; since: Date | undefined },
): Promise<LogPlace | undefined> {
  const { rows } = await database.query({
    name: "last_scanned_search",
    text: `select at, request_id from search_log
           where organization_id = $1 and at <= $2 and (at, request_id) < ($2, $3) and at >= $5
           order by at desc, request_id desc offset $4 limit 1`,
    values: [organizationId, from?.at ?? "infinity", from?.requestId ?? "", scannedMax - 1, since ?? "-infinity"],
  });
  return rows[0] && placeRow.parse(rows[0]);
}

async function readMatches(
  database: Database,
  organizationId: string,
  {
    keyword,
    tokenId,
    limit,
    from,
    to,
    since,
  }: WantedSearches & { from: LogPlace | undefined; to: LogPlace | undefined },
): Promise<LoggedSearch[]> {
  const { rows } = await database.query(
    `select ${loggedColumns}
     from search_log l left join tokens t on t.id = l.token_id
     where l.organization_id = $1 and l.at <= $2 and (l.at, l.request_id) < ($2, $3)
       and l.at >= $4 and (l.at, l.request_id) >= ($4, $5)
       and ($6::text is null or l.keyword ilike $6) and ($7::text is null or l.token_id = $7)
     order by l.at desc, l.request_id desc limit $8`,
    [
      organizationId,
      from?.at ?? "infinity",
      from?.requestId ?? "",
      to?.at ?? since ?? "-infinity",
      to?.requestId ?? "",
      keyword === undefined ? null : `%${keyword.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`,
      tokenId ?? null,
      limit,
    ],
  );
  return rows.map(readLogged);
}

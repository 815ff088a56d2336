import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf } from "../database/row.ts";
import { requestId as requestIdForm, timeOfId } from "../ids.ts";
import { answerSources } from "../outcomes.ts";
import { querySchema } from "../query/query.ts";
import { type SearchTrace, searchTrace } from "../queue/replies.ts";

/** The searched part of a query, without the engine: there is one. */
const searchedColumns = querySchema.pick({ keyword: true, location: true, language: true, device: true, depth: true });

const loggedRow = rowOf({
  at: z.date(),
  requestId: z.string(),
  tokenId: z.string(),
  tokenName: z.string().nullable(),
  tokenLast4: z.string().nullable(),
  keyHash: z.string().nullable(),
  ...searchedColumns.shape,
  targetDomain: z.string().nullable(),
  types: z.array(z.string()).nullable(),
  format: z.string().nullable(),
  durationMs: z.number(),
  source: z.enum(answerSources).nullable(),
  provider: z.string().nullable(),
  calls: searchTrace.shape.calls.nullable(),
});

/** A row of the search log. */
export interface LoggedSearch {
  /** When its request arrived. */
  at: Date;
  requestId: string;
  /** The name is null without one, and both texts once the organization is erased. */
  token: { tokenId: string; name: string | null; last4: string | null };
  keyHash: string | null;
  query: z.infer<typeof searchedColumns> & {
    targetDomain?: string;
    types?: string[];
    format?: string;
  };
  durationMs: number;
  /** What the worker did; null if no worker had it. `calls` are for operators: they have what each one cost us. */
  work: { source: string; provider: string; calls: SearchTrace["calls"] } | null;
}

/** What {@link readLogged} reads, for rows `l` of the search log with their tokens `t`. */
export const loggedColumns = `l.at, l.request_id, l.token_id, t.name as token_name, t.last4 as token_last4, l.key_hash, l.keyword,
  l.location, l.language, l.device, l.depth, l.target_domain, l.types, l.format, l.duration_ms, l.source, l.provider, l.calls`;

export function readLogged(read: unknown): LoggedSearch {
  const { at, requestId, keyHash, durationMs, source, provider, calls, ...row } = loggedRow.parse(read);
  const { tokenId, tokenName: name, tokenLast4: last4, targetDomain, types, format, ...query } = row;
  return {
    at,
    requestId,
    token: { tokenId, name, last4 },
    keyHash,
    query: {
      ...query,
      ...(targetDomain !== null && { targetDomain }),
      ...(types !== null && { types }),
      ...(format !== null && { format }),
    },
    durationMs,
    work: source === null ? null : { source, provider: provider ?? "", calls: calls ?? [] },
  };
}

/** Reads the rows of these searches of an organization, and ignores ids of another form. @returns by request id. */
export async function readSearches(
  database: Database,
  organizationId: string,
  requestIds: readonly string[],
): Promise<Map<string, LoggedSearch>> {
  const ids = requestIds.filter((id) => requestIdForm.safeParse(id).success);
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

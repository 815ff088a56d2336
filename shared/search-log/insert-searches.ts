import type { Database } from "../database/pool.ts";
import { timeOfId } from "../ids.ts";
import type { SearchRecord } from "./logged-search.ts";

/** Of a search with more calls, the first ones. A search of the greatest depth makes ten, and a few again. */
const callsMax = 50;

// A second row of a search, from a job that ran twice or from the other process, only adds what the worker did. The rows are
// inserted in the order of the key, so that two processes with the same searches do not wait for each other in a circle. A
// search that ends while its organization is erased leaves no row.
const insertion = {
  name: "insert_searches",
  text: `insert into search_log as l (at, request_id, organization_id, token_id, key_hash, keyword, location, language, device,
    depth, target_domain, types, format, duration_ms, source, provider, calls)
  select distinct on (s.organization_id, s.at, s.request_id) s.*
  from json_to_recordset($1) as s (at timestamptz, request_id text, organization_id text, token_id text, key_hash text, keyword text,
    location text, language text, device text, depth integer, target_domain text, types text[], format text,
    duration_ms integer, source text, provider text, calls jsonb)
  join organizations o on o.id = s.organization_id and o.erased_at is null
  order by s.organization_id, s.at, s.request_id, s.source nulls last
  on conflict on constraint one_row_per_search do update
    set source = excluded.source, provider = excluded.provider, calls = excluded.calls
    where l.source is null and excluded.source is not null`,
};

/** Writes one row for each search, in one round trip. Writing a search again changes nothing, or adds what its worker did. */
export async function insertSearches(database: Database, records: readonly SearchRecord[]): Promise<void> {
  await database.query({ ...insertion, values: [JSON.stringify(records.map(rowOf))] });
}

function rowOf({ requestId, query, trace, ...record }: SearchRecord) {
  return {
    at: timeOfId(requestId),
    request_id: requestId,
    organization_id: record.organizationId,
    token_id: record.tokenId,
    key_hash: record.keyHash,
    keyword: query.keyword,
    location: query.location,
    language: query.language,
    device: query.device,
    depth: query.depth,
    target_domain: query.targetDomain,
    types: query.types,
    format: query.format,
    duration_ms: Math.round(record.durationMs),
    source: trace?.from,
    provider: trace?.provider,
    calls: trace?.calls.slice(0, callsMax),
  };
}

import { z } from "zod";
import { valueOf } from "../database/row.ts";
import { BackgroundWriter } from "../database/background-writer.ts";
import { type Database, databaseOf, openDatabase } from "../database/pool.ts";
import { timeOfId } from "../ids.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Context } from "../process/context.ts";
import type { Query } from "../query/query.ts";
import type { SearchTrace } from "../queue/replies.ts";
import { insertRefused, type RefusedSearch } from "./refused-searches.ts";

/** Rows beyond this number are dropped. With the longest keywords they take some 15 MB. */
const waitingMax = 10_000;
const batchSizeMax = 1_000;
/** At most so many calls of a search are logged, the first ones. A search of the greatest depth makes ten, and a few retries. */
const callsMax = 50;

/** What a process knows of a search that it ended. */
export interface SearchRecord {
  requestId: string;
  organizationId: string;
  tokenId: string;
  /** SHA-256 of the Idempotency-Key in hexadecimal; undefined without one. */
  keyHash: string | undefined;
  query: Query;
  /** In a worker from the enqueueing to the answer of the engine, in the API from the arrival of the request. */
  durationMs: number;
  /** Undefined in the API, which does not know what a worker did. */
  trace: Pick<SearchTrace, "from" | "provider" | "calls"> | undefined;
}

/** Writes rows of the search log in the background, on a connection of its own: no search waits for it or fails because of it. */
export class LogWriter<Row> extends BackgroundWriter<Row> {
  constructor(parts: { insert: (batch: Row[]) => Promise<void>; metrics: Pick<Metrics, "searchLogRows">; log: Log }) {
    super({
      waitingMax,
      sizeMax: batchSizeMax,
      write: async (batch) => {
        await parts.insert(batch);
        return batch.length;
      },
      warn: throttledWarning(parts.log, "rows of the search log were not written at once"),
      count: (outcome, rows) => parts.metrics.searchLogRows.inc({ outcome }, rows),
    });
  }
}

export type SearchLog = LogWriter<SearchRecord>;

/** Opens the logs of searches and of refused searches on one connection. @returns undefined if SEARCH_LOG_DAYS is 0. */
export function openSearchLog(
  context: Pick<Context, "config" | "metrics" | "log" | "shutdown">,
  processName: "api" | "worker",
): { searches: SearchLog; refused: LogWriter<RefusedSearch> } | undefined {
  const { config, metrics, log, shutdown } = context;
  if (config.SEARCH_LOG_DAYS === 0) return undefined;
  const name = `${processName}-search-log`;
  const database = openDatabase({ ...databaseOf(config), name, sizeMax: 1, log, shutdown });
  const searches = new LogWriter<SearchRecord>({ insert: (batch) => insertSearches(database, batch), metrics, log });
  const refused = new LogWriter<RefusedSearch>({ insert: (batch) => insertRefused(database, batch), metrics, log });
  shutdown.register("search log", async () => {
    await searches.close();
    await refused.close();
  });
  return { searches, refused };
}

// A second row of a search, from a job that ran twice or from the other process, only adds what the worker did. The rows are
// inserted in the order of the key, so that two processes with the same searches do not wait for each other in a circle. A
// search that ends while its organization is erased leaves no row.
const insertion = {
  name: "insert_searches",
  text: `insert into search_log as l (at, request_id, organization_id, token_id, key_hash, keyword, location, language, device,
    depth, target_domain, types, format, duration_ms, source, provider, calls)
  select distinct on (s."organizationId", s.at, s."requestId") s.*
  from json_to_recordset($1) as s (at timestamptz, "requestId" text, "organizationId" text, "tokenId" text, "keyHash" text, keyword text,
    location text, language text, device text, depth integer, "targetDomain" text, types text[], format text,
    "durationMs" integer, source text, provider text, calls jsonb)
  join organizations o on o.id = s."organizationId" and o.erased_at is null
  order by s."organizationId", s.at, s."requestId", s.source nulls last
  on conflict on constraint one_row_per_search do update
    set source = excluded.source, provider = excluded.provider, calls = excluded.calls
    where l.source is null and excluded.source is not null`,
};

/** Writes one row for each search, in one round trip. Writing a search again changes nothing, or adds what its worker did. */
export async function insertSearches(database: Database, records: readonly SearchRecord[]): Promise<void> {
  await database.query({ ...insertion, values: [JSON.stringify(records.map(rowOf))] });
}

function rowOf({ query, trace, ...record }: SearchRecord) {
  return {
    at: timeOfId(record.requestId),
    ...record,
    ...query,
    durationMs: Math.round(record.durationMs),
    source: trace?.from,
    provider: trace?.provider,
    calls: trace?.calls.slice(0, callsMax),
  };
}

/**
 * Makes the days of a table that come next, by default of the search log, and removes those that are older than so many days; with 0
 * all of them. @returns how many days it removed.
 */
export async function rotateDays(
  database: Database,
  days: number,
  table: "search_log" | "kept_answers" = "search_log",
): Promise<number> {
  const { rows } = await database.query("select rotate_days($1, $2) as removed", [table, days]);
  return valueOf(z.number(), rows[0]);
}

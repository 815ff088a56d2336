import { z } from "zod";
import { Batcher } from "../concurrency/batcher.ts";
import { retryWhile } from "../concurrency/retry.ts";
import type { Shutdown } from "../concurrency/shutdown.ts";
import type { Config } from "../config.ts";
import { type Database, openDatabase } from "../database/pool.ts";
import { isTransient } from "../database/transient-errors.ts";
import { timeOfId } from "../ids.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Query } from "../query/query.ts";
import type { SearchTrace } from "../queue/replies.ts";

/** Rows beyond this number are dropped. With the longest keywords they take some 15 MB. */
const waitingMax = 10_000;
const batchSizeMax = 1_000;
/** A process writes at most five batches a second. */
const batchPauseMs = 200;
const retryPauseMs = 1_000;
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

/**
 * Writes the search log in the background, on a connection of its own: no search waits for it or fails because of it. Rows wait
 * in memory while Postgres is slow or down. A row is lost if too many wait, if Postgres refuses it, or if the process dies first.
 */
export class SearchLog {
  readonly #database: Database;
  readonly #metrics: Pick<Metrics, "searchLogRows">;
  readonly #warn: (error: unknown) => void;
  readonly #batches: Batcher<SearchRecord>;
  #waiting = 0;
  #isClosing = false;

  constructor(parts: { database: Database; metrics: Pick<Metrics, "searchLogRows">; log: Log }) {
    this.#database = parts.database;
    this.#metrics = parts.metrics;
    this.#warn = throttledWarning(parts.log, "rows of the search log were not written at once");
    this.#batches = new Batcher({
      sizeMax: batchSizeMax,
      concurrency: 1,
      pauseMs: batchPauseMs,
      run: (batch) => this.#write(batch),
    });
  }

  /** Takes what is known of a search that has ended. Returns at once and never throws. */
  add(record: SearchRecord): void {
    if (this.#waiting >= waitingMax) {
      this.#metrics.searchLogRows.inc({ outcome: "dropped" });
      return;
    }
    this.#waiting += 1;
    this.#batches.add(record);
  }

  /** Writes what waits. From now on a batch that Postgres does not take is not tried again. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#batches.idle();
  }

  async #write(batch: SearchRecord[]): Promise<void> {
    const mayRetry = (error: unknown) => {
      this.#warn(error);
      return isTransient(error) && !this.#isClosing;
    };
    const outcome = await retryWhile({ pauseMs: retryPauseMs, mayRetry }, () =>
      insertSearches(this.#database, batch),
    ).then(
      () => "written",
      () => "dropped",
    );
    this.#waiting -= batch.length;
    this.#metrics.searchLogRows.inc({ outcome }, batch.length);
  }
}

/** @returns undefined if SEARCH_LOG_DAYS is 0. */
export function openSearchLog(
  parts: { config: Config; metrics: Metrics; log: Log; shutdown: Shutdown },
  processName: "api" | "worker",
): SearchLog | undefined {
  const { config, metrics, log, shutdown } = parts;
  if (config.SEARCH_LOG_DAYS === 0) return undefined;
  const { DATABASE_URL: url, DATABASE_POOLER: pooler } = config;
  const isPooled = pooler === "transaction";
  const name = `${processName}-search-log`;
  const database = openDatabase({ url, name, isPooled, sizeMax: 1, log, shutdown });
  const searchLog = new SearchLog({ database, metrics, log });
  shutdown.register("search log", () => searchLog.close());
  return searchLog;
}

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

/**
 * Makes the days of the search log that come next, and removes those that are older than so many days; with 0 all of them.
 * @returns how many days it removed.
 */
export async function rotateSearchLog(database: Database, days: number): Promise<number> {
  const { rows } = await database.query("select rotate_search_log($1) as removed", [days]);
  return z.object({ removed: z.number() }).parse(rows[0]).removed;
}

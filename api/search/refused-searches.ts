import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import { truncate } from "../../shared/errors/truncate.ts";
import { readValidFields } from "../../shared/query/query.ts";
import type { RefusedSearch } from "../../shared/search-log/refused-searches.ts";
import type { LogWriter } from "../../shared/search-log/search-log.ts";
import type { Context } from "../../shared/process/context.ts";
import { SearchFailed } from "../errors.ts";
import type { RequestScope } from "../http/request-scope.ts";

/** Rows of an organization in a minute. The refused searches beyond them are counted in one more row. */
const rowsPerMinuteMax = 10;
/** Refused searches of further organizations are dropped in this minute. */
const organizationsPerMinuteMax = 10_000;
const minuteMs = 60_000;
const messageCharactersMax = 500;

/** What was refused of an organization in the current minute. */
interface Refusals {
  logged: number;
  counted: number;
  /** The last one that is only counted. */
  last: RefusedSearch | undefined;
}

/**
 * Logs refused searches for the people who sent them, in the background and bounded: a million of them make eleven rows a minute.
 * If the process dies, rows that wait and the counts of the minute are lost.
 */
export class RefusedSearches {
  readonly #writer: RowWriter;
  readonly #refusals = new Map<string, Refusals>();
  #minute = 0;

  constructor(writer: RowWriter) {
    this.#writer = writer;
  }

  /**
   * Takes a request that has ended. Ignores those that are no refused search of a known organization. A search that ran and failed
   * has a refund.
   */
  add({ requestId, search, error, logFields: { organizationId, tokenId } }: RefusedRequest): void {
    if (search === undefined || !error || organizationId === undefined || tokenId === undefined) return;
    const { code, message, details } = error;
    if (error instanceof SearchFailed || details.reason === "still_running") return;
    this.countMinute();
    const refusals = this.#refusals.get(organizationId) ?? { logged: 0, counted: 0, last: undefined };
    if (refusals.logged === 0) {
      if (this.#refusals.size >= organizationsPerMinuteMax) return this.#writer.drop();
      this.#refusals.set(organizationId, refusals);
    }
    const row = {
      requestId,
      organizationId,
      tokenId,
      code,
      reason: typeof details.reason === "string" ? details.reason : undefined,
      message: truncate(withoutTokens(message), messageCharactersMax),
      query: undefined,
      refusals: 1,
    };
    if (refusals.logged < rowsPerMinuteMax) {
      refusals.logged += 1;
      const { keyword, ...query } = readValidFields(search);
      const shown = { ...query, ...(keyword !== undefined && { keyword: withoutTokens(keyword) }) };
      this.#writer.add({ ...row, query: shown });
    } else {
      refusals.counted += 1;
      refusals.last = row;
    }
  }

  /** Writes the counts of a minute that is over. */
  countMinute(nowMs = Date.now()): void {
    const minute = Math.floor(nowMs / minuteMs);
    if (minute === this.#minute) return;
    for (const { last, counted } of this.#refusals.values()) if (last) this.#writer.add({ ...last, refusals: counted });
    this.#refusals.clear();
    this.#minute = minute;
  }
}

type RowWriter = Pick<LogWriter<RefusedSearch>, "add" | "drop">;
type RefusedRequest = Pick<RequestScope, "requestId" | "search" | "error" | "logFields">;

/** A token that was pasted into the wrong field stays out of the log. */
const withoutTokens = (text: string) => text.replaceAll(/smk_[a-z0-9]+/gi, "smk_…");

/** @param writer undefined unless searches are logged. */
export function openRefusedSearches(
  context: Context,
  writer: LogWriter<RefusedSearch> | undefined,
): RefusedSearches | undefined {
  if (!writer) return undefined;
  const refused = new RefusedSearches(writer);
  runPeriodically({ ...context, name: "refused searches", pauseMs: minuteMs, run: async () => refused.countMinute() });
  context.shutdown.register("counts of refused searches", () => refused.countMinute(Number.POSITIVE_INFINITY));
  return refused;
}

import { readHistory, readSearchEntries } from "../../../shared/credits/history.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { requestId as requestIdSchema } from "../../../shared/ids.ts";
import { findSearches, type FoundSearches, type SearchEntry } from "../../../shared/search-log/find-searches.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";
import type { HistoryView } from "./history-view.ts";
import { isFinding } from "./history-view.ts";

/** A part of a view, with the place at which the next one begins as `before`. */
export type Entries = Pick<FoundSearches, "entries" | "older" | "isCutShort">;

/**
 * Reads at most `limit` entries of a view, newest first, with what was searched. Without anything to find they come from the ledger; a
 * request id is looked up in the ledger too, so that it is found whether or not the search log has it.
 */
export async function readEntries(
  database: Database,
  organizationId: string,
  view: HistoryView,
  limit: number,
): Promise<Entries> {
  const { filter, find, tokenId, before } = view;
  if (find !== undefined && requestIdSchema.safeParse(find).success) {
    const entries = await readSearchEntries(database, organizationId, [find]);
    return { entries: await withSearches(database, organizationId, entries), older: undefined, isCutShort: false };
  }
  if (isFinding(view)) return findSearches(database, organizationId, { keyword: find, tokenId, filter, before, limit });
  // One more than is shown, to know whether there are older entries.
  const page = { filter, before: before === undefined ? undefined : Number(before), limit: limit + 1 };
  const read = await readHistory(database, organizationId, page);
  const entries = await withSearches(database, organizationId, read.slice(0, limit));
  const older = read.length > limit ? entries.at(-1)?.version.toString() : undefined;
  return { entries, older, isCutShort: false };
}

/** Adds to entries of an organization what the search log has of them. */
export async function withSearches(
  database: Database,
  organizationId: string,
  entries: SearchEntry[],
): Promise<SearchEntry[]> {
  const ids = entries.flatMap((entry) => ("requestId" in entry ? [entry.requestId] : []));
  const searches = await readSearches(database, organizationId, ids);
  return entries.map((entry) => ("requestId" in entry ? { ...entry, search: searches.get(entry.requestId) } : entry));
}

import type { Request } from "express";
import { z } from "zod";
import {
  historyCursor,
  type HistoryFilter,
  historyFilters,
  readHistory,
  readSearchEntries,
} from "../../ledger/history.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { requestId } from "../../../shared/ids.ts";
import { keywordCharactersMax } from "../../../shared/query/query.ts";
import { findSearches, type FoundSearches, type SearchEntry } from "../../ledger/find-searches.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";

/** The part of the history that a page shows. */
export interface HistoryView {
  filter: HistoryFilter;
  /** A part of the keyword, or the id of a request; undefined for every search. */
  find: string | undefined;
  tokenId: string | undefined;
  /** Where the page begins: a cursor of the history, or the id of the search before it among found searches. Undefined for the newest page. */
  before: string | undefined;
}

/** Whether the view shows searches found in the search log instead of the whole history. */
export const isFinding = ({ find, tokenId }: Pick<HistoryView, "find" | "tokenId">) =>
  find !== undefined || tokenId !== undefined;

const orNothing = (text: string) => (text === "" ? undefined : text);

const viewQuery = z
  .object({
    show: z.enum(historyFilters).default("all"),
    find: z
      .string()
      .trim()
      .max(2 * keywordCharactersMax) // A character may have two code units.
      .regex(/^\P{Cc}*$/u)
      .default("")
      .transform(orNothing),
    token: z
      .string()
      .regex(/^(tok_[0-7][0-9a-z]{25})?$/)
      .default("")
      .transform(orNothing),
    before: z.union([historyCursor, requestId]).optional(),
  })
  .refine(({ find, token: tokenId, before }) => {
    return before === undefined || isFinding({ find, tokenId }) === before.startsWith("req_");
  });

/** Reads the view from a request's query. @throws {CallerError} `not_found` for a view that does not exist. */
export function readHistoryView(request: Request): HistoryView {
  const parsed = viewQuery.safeParse(request.query);
  if (!parsed.success) throw new CallerError("not_found");
  const { show: filter, find, token: tokenId, before } = parsed.data;
  return { filter, find, tokenId, before };
}

/** The query that {@link readHistoryView} reads back. */
export function historyViewQuery({ filter, find, tokenId, before }: HistoryView): string {
  return new URLSearchParams({
    show: filter,
    ...(find !== undefined && { find }),
    ...(tokenId !== undefined && { token: tokenId }),
    ...(before !== undefined && { before }),
  }).toString();
}

/** Entries of a view; the next ones begin at `older`. */
export type Entries = Pick<FoundSearches, "entries" | "older" | "isCutShort">;

/**
 * Reads at most `limit` entries of a view, newest first, with their queries. A request id is looked up in the history, so that it is
 * found even if the search log does not have it.
 */
export async function readEntries(
  database: Database,
  organizationId: string,
  view: HistoryView,
  limit: number,
): Promise<Entries> {
  const { filter, find, tokenId, before } = view;
  if (find !== undefined && requestId.safeParse(find).success) {
    const found = await withSearches(
      database,
      organizationId,
      await readSearchEntries(database, organizationId, [find]),
    );
    const entries = found.filter(({ search }) => tokenId === undefined || search?.token.tokenId === tokenId);
    return { entries, older: undefined, isCutShort: false };
  }
  if (isFinding(view)) return findSearches(database, organizationId, { keyword: find, tokenId, filter, before, limit });
  const { entries, older } = await readHistory(database, organizationId, { filter, before, limit });
  return { entries: await withSearches(database, organizationId, entries), older, isCutShort: false };
}

/** Adds the search log's data to entries of an organization. */
export async function withSearches(
  database: Database,
  organizationId: string,
  entries: SearchEntry[],
): Promise<SearchEntry[]> {
  const ids = entries.flatMap((entry) => ("requestId" in entry ? [entry.requestId] : []));
  const searches = await readSearches(database, organizationId, ids);
  return entries.map((entry) => ("requestId" in entry ? { ...entry, search: searches.get(entry.requestId) } : entry));
}

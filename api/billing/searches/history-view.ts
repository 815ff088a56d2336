import type { Request } from "express";
import { z } from "zod";
import {
  historyCursor,
  type HistoryFilter,
  historyFilters,
  readHistory,
  readSearchEntries,
  type TimeSpan,
} from "../../ledger/history.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { requestId } from "../../../shared/ids.ts";
import { keywordCharactersMax } from "../../../shared/query/query.ts";
import { findSearches, type FoundSearches, type SearchEntry } from "../../ledger/find-searches.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";

/** What a page shows: a part of the ledger's history, or the searches that were refused. */
export const viewFilters = [...historyFilters, "refused"] as const;
export type ViewFilter = (typeof viewFilters)[number];

export interface HistoryView<Filter = ViewFilter> {
  filter: Filter;
  /** A part of the keyword, or the id of a request; undefined for every search. */
  find: string | undefined;
  tokenId: string | undefined;
  /** The first and the last UTC day, such as `2026-03-01`. */
  from: string | undefined;
  to: string | undefined;
  /** Where the page begins: a cursor of the history, or the id of the search before it among found searches. Undefined for the newest page. */
  before: string | undefined;
}

/** A view of the ledger. */
export type LedgerView = HistoryView<HistoryFilter>;

export const isOfLedger = (view: HistoryView): view is LedgerView => view.filter !== "refused";

/** Whether the view shows searches found in the search log instead of the whole history. */
export const isFinding = ({ find, tokenId }: Pick<HistoryView, "find" | "tokenId">) =>
  find !== undefined || tokenId !== undefined;

/** Whether the view leaves out searches by anything but their outcome. */
export const isNarrowed = (view: HistoryView) => isFinding(view) || view.from !== undefined || view.to !== undefined;

const dayMs = 86_400_000;
const midnightOf = (day: string) => new Date(`${day}T00:00Z`);

export const isRequestId = (find: string | undefined) => requestId.safeParse(find).success;

/** The time span of a view's days. A request id is found on whatever day. */
export const spanOf = ({ find, from, to }: HistoryView): TimeSpan =>
  isRequestId(find)
    ? {}
    : {
        since: from === undefined ? undefined : midnightOf(from),
        until: to === undefined ? undefined : new Date(midnightOf(to).getTime() + dayMs),
      };

const orNothing = (text: string) => (text === "" ? undefined : text);

const day = z
  .union([z.literal(""), z.iso.date().startsWith("20")])
  .default("")
  .transform(orNothing);

const viewQuery = z
  .object({
    show: z.enum(viewFilters).default("all"),
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
    from: day,
    to: day,
    before: z.union([historyCursor, requestId]).optional(),
  })
  .refine(({ show, find, token: tokenId, before }) => {
    const isByRequest = show === "refused" || isFinding({ find, tokenId });
    return before === undefined || isByRequest === before.startsWith("req_");
  });

/** Reads the view from a request's query. @throws {CallerError} `not_found` for a view that does not exist. */
export function readHistoryView(request: Request): HistoryView {
  const parsed = viewQuery.safeParse(request.query);
  if (!parsed.success) throw new CallerError("not_found");
  const { show: filter, token: tokenId, ...others } = parsed.data;
  return { filter, tokenId, ...others, before: others.before };
}

/** Reads a view of the ledger. @throws {CallerError} `not_found` for every other. */
export function readLedgerView(request: Request): LedgerView {
  const view = readHistoryView(request);
  if (!isOfLedger(view)) throw new CallerError("not_found");
  return view;
}

/** The query that {@link readHistoryView} reads back. */
export function historyViewQuery({ filter: show, tokenId: token, find, from, to, before }: HistoryView): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries({ show, find, token, from, to, before }))
    if (value !== undefined) fields.append(name, value);
  return fields.toString();
}

/**
 * Reads at most `limit` entries of a view, newest first, with their queries. A request id is looked up in the history, so that it is
 * found whatever the days of the view, and even if the search log does not have it.
 */
export async function readEntries(
  database: Database,
  organizationId: string,
  view: LedgerView,
  limit: number,
): Promise<FoundSearches> {
  const { filter, find, tokenId, before } = view;
  const span = spanOf(view);
  if (find !== undefined && isRequestId(find)) {
    const found = await withSearches(
      database,
      organizationId,
      await readSearchEntries(database, organizationId, [find]),
    );
    const entries = found.filter(({ search }) => tokenId === undefined || search?.token.tokenId === tokenId);
    return { entries, older: undefined, isCutShort: false };
  }
  if (isFinding(view))
    return findSearches(database, organizationId, { keyword: find, tokenId, filter, before, limit, ...span });
  const { entries, older } = await readHistory(database, organizationId, { filter, before, limit, ...span });
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

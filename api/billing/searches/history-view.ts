import type { Request } from "express";
import { z } from "zod";
import { type HistoryFilter, historyFilters } from "../../../shared/credits/history.ts";
import { CallerError } from "../../../shared/errors.ts";
import { requestId } from "../../../shared/ids.ts";
import { keywordCharactersMax } from "../../../shared/query/query.ts";

/** The part of the history that a page shows. */
export interface HistoryView {
  filter: HistoryFilter;
  /** A part of the keyword, or the id of a request; undefined for every search. */
  find: string | undefined;
  tokenId: string | undefined;
  /** Only older entries: than this version of the ledger, or, where something is to be found, than this search. Undefined on the newest page. */
  before: string | undefined;
}

/** Whether the view shows what is found in the search log, and not every entry of the ledger. */
export const isFinding = ({ find, tokenId }: Pick<HistoryView, "find" | "tokenId">) =>
  find !== undefined || tokenId !== undefined;

const version = z
  .string()
  .regex(/^[1-9]\d{0,15}$/)
  .refine((digits) => Number.isSafeInteger(Number(digits)));

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
    before: z.union([version, requestId]).optional(),
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

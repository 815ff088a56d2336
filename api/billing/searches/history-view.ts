import type { Request } from "express";
import { z } from "zod";
import { type HistoryFilter, historyFilters } from "../../../shared/credits/history.ts";
import { CallerError } from "../../../shared/errors.ts";

/** The part of the history that a page shows. */
export interface HistoryView {
  filter: HistoryFilter;
  /** Only entries older than this version; undefined on the newest page. */
  before: number | undefined;
}

const viewQuery = z.object({
  show: z.enum(historyFilters).default("all"),
  before: z
    .string()
    .regex(/^[1-9]\d{0,15}$/)
    .transform(Number)
    .refine(Number.isSafeInteger)
    .optional(),
});

/** Reads the view from a request's query. @throws {CallerError} `not_found` for a view that does not exist. */
export function readHistoryView(request: Request): HistoryView {
  const parsed = viewQuery.safeParse(request.query);
  if (!parsed.success) throw new CallerError("not_found");
  return { filter: parsed.data.show, before: parsed.data.before };
}

/** The query that {@link readHistoryView} reads back. */
export function historyViewQuery({ filter, before }: HistoryView): string {
  return new URLSearchParams({ show: filter, ...(before !== undefined && { before: String(before) }) }).toString();
}

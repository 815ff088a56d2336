import type { Request } from "express";
import { z } from "zod";
import { type DayFigures, type LedgerDay, withoutPlace } from "../../ledger/days.ts";
import { readTokenDays, type TokenDays } from "../../ledger/token-days.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { type Durations, readDurations } from "../../ledger/durations.ts";
import { tokenId as tokenIdSchema } from "../../../shared/ids.ts";

/** What the chart of the overview shows. */

const measures = ["searches", "dollars", "latency", "uncharged"] as const;
export type Measure = (typeof measures)[number];
const ranges = ["24h", "7d", "30d", "90d", "month"] as const;
export type Range = (typeof ranges)[number];

export interface UsageView {
  measure: Measure;
  range: Range;
  /** Only searches with this token; undefined for all searches. */
  tokenId: string | undefined;
}

export const measureLabels: Record<Measure, string> = {
  searches: "Searches",
  dollars: "Dollars",
  latency: "Latency",
  uncharged: "Not charged",
};
export const rangeLabels: Record<Range, string> = {
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  month: "This month",
};

/** The last so many days or hours; the last one is not over. */
interface Periods {
  unit: "day" | "hour";
  length: number;
}

const viewQuery = z.object({
  measure: z.enum(measures).default("searches"),
  range: z.enum(ranges).default("30d"),
  token: z.union([tokenIdSchema, z.literal("").transform(() => undefined)]).optional(),
});

/** Reads the view from a request's query. @throws {CallerError} `not_found` for a view that does not exist. */
export function readUsageView(request: Request): UsageView {
  const parsed = viewQuery.safeParse(request.query);
  if (!parsed.success) throw new CallerError("not_found");
  const { measure, range, token: tokenId } = parsed.data;
  return { measure, range, tokenId };
}

/** The query that {@link readUsageView} reads back. */
export const usageViewQuery = ({ measure, range, tokenId }: UsageView) =>
  new URLSearchParams({ measure, range, ...(tokenId !== undefined && { token: tokenId }) }).toString();

/** Whether the chart is read only when the page is opened: to read it anew for each search would cost more than the searches. */
export const isReadOnce = ({ measure, tokenId }: UsageView) => measure === "latency" || tokenId !== undefined;

/** The days or hours of a range, at this time in UTC. */
export function periodsOf({ range }: Pick<UsageView, "range">, now: Date): Periods {
  if (range === "24h") return { unit: "hour", length: 24 };
  return { unit: "day", length: range === "month" ? now.getUTCDate() : Number.parseInt(range, 10) };
}

/** What the chart draws: the figures of all searches, of those with one token, durations, or none without a search log. */
export type Chart =
  | { kind: "all"; figures: DayFigures[] }
  | ({ kind: "token" } & TokenDays)
  | ({ kind: "durations"; keptDays: number } & Durations)
  | { kind: "no_log" };

/** Reads the chart of a view. @param days the days or hours of its range. @param keptDays the days of the search log; 0 for none. */
export async function readChart(
  database: Database,
  organizationId: string,
  { view, days, keptDays }: { view: UsageView; days: readonly LedgerDay[]; keptDays: number },
): Promise<Chart> {
  const { measure, tokenId } = view;
  if (measure === "latency") {
    if (keptDays === 0) return { kind: "no_log" };
    return { kind: "durations", keptDays, ...(await readDurations(database, organizationId, { days, tokenId })) };
  }
  if (tokenId === undefined) return { kind: "all", figures: days.map(withoutPlace) };
  return { kind: "token", ...(await readTokenDays(database, organizationId, tokenId, days)) };
}

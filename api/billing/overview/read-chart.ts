import { type DayFigures, type LedgerDay, withoutPlace } from "../../../shared/credits/days.ts";
import { readTokenDays, type TokenDays } from "../../../shared/credits/token-days.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { type Durations, readDurations } from "../../../shared/search-log/durations.ts";
import type { Periods, UsageView } from "./usage-view.ts";

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
  {
    view,
    unit,
    days,
    keptDays,
  }: { view: UsageView; unit: Periods["unit"]; days: readonly LedgerDay[]; keptDays: number },
): Promise<Chart> {
  const { measure, tokenId } = view;
  if (measure === "latency") {
    if (keptDays === 0) return { kind: "no_log" };
    return { kind: "durations", keptDays, ...(await readDurations(database, organizationId, { days, unit, tokenId })) };
  }
  if (tokenId === undefined) return { kind: "all", figures: days.map(withoutPlace) };
  return { kind: "token", ...(await readTokenDays(database, organizationId, tokenId, days)) };
}

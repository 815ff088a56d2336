import { z } from "zod";
import { type LimitReason, limitReasons } from "../outcomes.ts";
import type { PayerLimits } from "../queue/search-job.ts";

/**
 * Limits that a payer sets: mils per UTC day and calendar month, for an organization and for a token. Postgres counts what was
 * spent, Redis has a copy (limits.lua), and admit.lua refuses a search that could exceed a limit together with the searches in
 * flight. If Redis has lost those, `decide_searches()` refuses the charge instead, and the caller pays nothing. It uses the larger
 * of the limit at admission and the present one, so lowering a limit refuses no search in flight.
 */

/** Which limit a search would exceed. */
export interface LimitName {
  scope: "organization" | "token";
  period: "day" | "month";
}

/** What counts against the limits of a search: mils spent today and in this month, and mils held. */
export type PayerSpending = Record<LimitName["scope"], Record<LimitName["period"], number> & { heldMils: number }>;

/** A limit as its payer sees it. */
export const limitState = z
  .strictObject({
    scope: z.enum(["organization", "token"]).describe("Whose limit it is: the organization's or this token's."),
    period: z.enum(["day", "month"]).describe("The UTC day or the calendar month."),
    limitMils: z.int().min(0).describe("The limit, in mils."),
    spentMils: z.int().describe("The mils spent in this period, without what was given back."),
    heldMils: z.int().min(0).describe("The mils held by searches in flight, which count until they end."),
    renewsAt: z.iso.datetime().describe("When the period ends."),
  })
  .describe("A limit, and what counts against it.");
export type LimitState = z.infer<typeof limitState>;

/** The limits that are set, with what was spent. @param nowMs by the clock that decided what counts as spent today. */
export function describeLimits(limits: PayerLimits, spent: PayerSpending, nowMs: number): LimitState[] {
  return (["organization", "token"] as const).flatMap((scope) =>
    (["day", "month"] as const).flatMap((period) => {
      const limitMils = limitMilsOf(limits, { scope, period });
      if (limitMils === undefined) return [];
      const { heldMils, [period]: spentMils } = spent[scope];
      return [{ scope, period, limitMils, spentMils, heldMils, renewsAt: renewalAfter(period, nowMs).toISOString() }];
    }),
  );
}

const limitMilsOf = (limits: PayerLimits | undefined, { scope, period }: LimitName) =>
  limits?.[scope]?.[period === "day" ? "dayMils" : "monthMils"];

const limitOf: Record<LimitReason, LimitName> = {
  daily_limit: { scope: "organization", period: "day" },
  monthly_limit: { scope: "organization", period: "month" },
  token_daily_limit: { scope: "token", period: "day" },
  token_monthly_limit: { scope: "token", period: "month" },
};

/** The limit behind the reason of a refund; undefined for any other reason. */
export function limitBehind(reason: string | undefined): LimitName | undefined {
  const known = limitReasons.find((name) => name === reason);
  return known && limitOf[known];
}

const dayMs = 86_400_000;
const spendingForm = /^(\d+):(-?\d+):(-?\d+):(\d+)$/;

/**
 * The mils spent in a period by the clock of Postgres, out of the text of `spending_text()` that it has just returned.
 * @throws {Error} if the text has another form.
 */
export function spentIn(period: LimitName["period"], spending: string): number {
  const { dayMils, monthMils } = readSpending(spending);
  return period === "day" ? dayMils : monthMils;
}

/** When the period ends of which Postgres has returned this spending. @throws {Error} if the text has another form. */
export function renewalBehind(period: LimitName["period"], spending: string): Date {
  const { day, nextMonth } = readSpending(spending);
  return new Date((period === "day" ? day + 1 : nextMonth) * dayMs);
}

/** When a period ends that has begun by this time. */
function renewalAfter(period: LimitName["period"], nowMs: number): Date {
  const now = new Date(nowMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return new Date(period === "day" ? Date.UTC(year, month, now.getUTCDate() + 1) : Date.UTC(year, month + 1, 1));
}

function readSpending(spending: string) {
  const form = spendingForm.exec(spending);
  if (!form) throw new Error(`"${spending}" is no spending`);
  const [day = 0, dayMils = 0, monthMils = 0, nextMonth = 0] = form.slice(1).map(Number);
  return { day, dayMils, monthMils, nextMonth };
}

/**
 * The details of 402 `out_of_credits` for a search that a limit refuses. If the limit at admission does not explain the refusal,
 * spending has fallen since: then the limit is left out, and `availableMils` is 0.
 */
export function limitDetails(
  limits: PayerLimits | undefined,
  { scope, period }: LimitName,
  shown: { priceMils: number; spentMils: number; heldMils: number; topupUrl: string; renewsAt: Date },
) {
  const { priceMils, spentMils, heldMils, topupUrl, renewsAt } = shown;
  const limitMils = limitMilsOf(limits, { scope, period });
  const leftMils = limitMils === undefined ? 0 : limitMils - spentMils - heldMils;
  const organizationReason = period === "day" ? ("daily_limit" as const) : ("monthly_limit" as const);
  return {
    priceMils,
    availableMils: leftMils < priceMils ? Math.max(0, leftMils) : 0,
    heldMils,
    action: "raise_limit" as const,
    topupUrl,
    reason: scope === "token" ? ("token_limit" as const) : organizationReason,
    period,
    ...(limitMils !== undefined && leftMils < priceMils && { limitMils }),
    renewsAt: renewsAt.toISOString(),
  };
}

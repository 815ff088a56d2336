import type { Request, Response } from "express";
import { z } from "zod";
import type { RateWindow } from "../shared/credits/admit.ts";
import { type CreditState, readUsage as readUsageInRedis } from "../shared/credits/holds.ts";
import { storeBalance } from "../shared/credits/stored-balances.ts";
import type { Credit } from "../shared/credits/ledger.ts";
import { describeLimits, type LimitState, limitState, type PayerSpending, spentIn } from "../shared/credits/limits.ts";
import { CallerError } from "../shared/errors.ts";
import type { Log } from "../shared/log.ts";
import { depthMax, organicPerPage } from "../shared/query/depth.ts";
import type { Caller } from "../shared/organizations/organizations.ts";
import type { Context } from "../shared/process/context.ts";
import type { Clock } from "../shared/redis/clock.ts";
import { natural, optional } from "../shared/schema.ts";
import { readCurrentCredit } from "./current-credit.ts";
import { isDefect } from "./datastore-unavailable.ts";
import { RateLimited, unavailable } from "./errors.ts";
import { sendJson, setRateLimitHeaders } from "./http/send-json.ts";
import { requestScopeOf } from "./http/request-scope.ts";
import type { Identify } from "./identify.ts";

/** The body of the 200 of usage. */
export const usageResponseBody = z
  .strictObject({
    creditBalanceMils: natural.describe("The available credit in mils: the balance minus what is held."),
    plan: z.string().describe("The organization's plan."),
    pricePerPageMils: optional(
      natural,
      `The price in mils per ${organicPerPage} results that a search's depth asks for, rounded up. Missing if ` +
        "the plan has one price for all depths.",
    ),
    maxDepth: optional(
      z.int().min(1).max(depthMax),
      "The largest depth that the plan includes. Missing if it includes all.",
    ),
    limits: optional(z.array(limitState), "The limits that apply to this token. Present if there are any."),
  })
  .describe("The available credit and the plan.");
export type UsageResponseBody = z.infer<typeof usageResponseBody>;

/** An organization's credit. `window` and `creditState` are undefined if Redis did not answer. */
export interface Usage {
  /** The balance minus what is held, in mils. */
  creditBalanceMils: number;
  window: RateWindow | undefined;
  creditState: CreditState | undefined;
  /** The limits of the caller with what counts against them; absent without any. */
  limits?: LimitState[];
}

type Stores = Pick<Context, "redis" | "database">;

/** The same, with what counts against limits; 0 where there are none. */
type Spent = Omit<Usage, "limits"> & { spent: PayerSpending };

/**
 * Reads an organization's usage and takes one request from its rate window, or none with `counted`: then this request was
 * counted before, or in the window of the account pages. Without Redis the balance comes from Postgres, and holds and window
 * are unknown.
 * @throws {CallerError} `rate_limited`, or `unavailable` if neither Redis nor Postgres answers.
 */
export type ReadUsage = (caller: Caller, counted?: boolean) => Promise<Usage>;

export function openUsage(parts: Stores & { clock: Pick<Clock, "nowMs"> }): ReadUsage {
  return async (caller, counted = false) => {
    const { spent, ...usage } = (await fromRedis(parts, caller, counted)) ?? (await fromPostgres(parts, caller));
    const { limits } = caller;
    return { ...usage, ...(limits && { limits: describeLimits(limits, spent, parts.clock.nowMs()) }) };
  };
}

async function fromRedis(stores: Stores, caller: Caller, counted: boolean): Promise<Spent | undefined> {
  const { redis } = stores;
  const { organizationId, plan } = caller;
  const first = await unlessUnreachable(readUsageInRedis(redis, caller, counted));
  if (!first) return undefined;
  if (first.outcome === "limited") throw RateLimited.byPlan("window", plan, first.window);
  if (first.spent) return usageOf(first, first.spent);
  const { balance, token } = await requireCredit(stores, caller, first.version);
  const stored = storeBalance(redis, organizationId, balance, token && [token]);
  const second = await unlessUnreachable(stored.then(() => readUsageInRedis(redis, caller, true)));
  return second?.spent && usageOf(second, second.spent);
}

/** What Redis answers; undefined if it does not. @throws a defect. */
const unlessUnreachable = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: unknown) => {
    if (isDefect(error)) throw error;
    return undefined;
  });

const usageOf = (
  { availableMils, window, creditState }: Awaited<ReturnType<typeof readUsageInRedis>>,
  spent: PayerSpending,
): Spent => ({ creditBalanceMils: availableMils, window, creditState, spent });

async function fromPostgres(stores: Stores, caller: Caller): Promise<Spent> {
  const { balance, token } = await requireCredit(stores, caller, 0);
  const spentBy = (spending: string | undefined) => ({
    day: spending ? spentIn("day", spending) : 0,
    month: spending ? spentIn("month", spending) : 0,
    heldMils: 0,
  });
  const spent = { organization: spentBy(balance.spending), token: spentBy(token?.spending) };
  return { creditBalanceMils: balance.balanceMils, window: undefined, creditState: undefined, spent };
}

async function requireCredit(
  stores: Stores,
  { organizationId, tokenId }: Caller,
  seenVersion: number,
): Promise<Credit> {
  const credit = await readCurrentCredit(stores, organizationId, seenVersion, { tokenId });
  if (!credit) throw new Error(`the organization ${organizationId} has disappeared`);
  return credit;
}

/** The response body of usage, the same in REST and MCP. */
export function serializeUsage({ plan }: Caller, { creditBalanceMils, limits }: Usage): string {
  const { code, pricePerPageMils, maxDepth } = plan;
  const body: UsageResponseBody = {
    creditBalanceMils,
    plan: code,
    ...(pricePerPageMils !== undefined && { pricePerPageMils }),
    ...(maxDepth !== undefined && { maxDepth }),
    ...(limits && { limits }),
  };
  return JSON.stringify(body);
}

/** The error of a failed usage request. Its contract has no 500, so a defect is logged and becomes a 503. */
export function toUsageError(log: Log, requestId: string, error: unknown): CallerError {
  if (error instanceof CallerError) return error;
  log.error({ err: error, requestId }, "unhandled error");
  return unavailable("balance_unreadable");
}

export interface UsageHandlerParts {
  identify: Identify;
  readUsage: ReadUsage;
  log: Log;
}

/** GET /v1/usage */
export function handleUsage({ identify, readUsage, log }: UsageHandlerParts) {
  return async (request: Request, response: Response) => {
    const { requestId, logFields } = requestScopeOf(response);
    try {
      const caller = await identify(request, response, "usage");
      const usage = await readUsage(caller);
      logFields.outcome = "answered";
      if (usage.window) setRateLimitHeaders(response, caller.plan, usage.window);
      sendJson(request, response, 200, serializeUsage(caller, usage));
    } catch (error) {
      throw toUsageError(log, requestId, error);
    }
  };
}

/** An organization's credit at one moment. The numbers agree with each other, and with REST and MCP. */
export interface AccountCredit {
  caller: Caller;
  availableMils: number;
  state: CreditState;
  window: RateWindow;
  windowEndsAt: Date;
}

/**
 * Reads an organization's credit and its rate window, without taking a request from the window.
 * @throws {CallerError} `unavailable` without Redis, which alone knows the holds.
 */
export type ReadCredit = (caller: Caller) => Promise<AccountCredit>;

export function creditReader(readUsage: ReadUsage, clock: Clock): ReadCredit {
  return async (caller) => {
    const { creditBalanceMils, window, creditState: state } = await readUsage(caller, true);
    if (!window || !state) throw unavailable("redis_unreachable");
    // Rounded to whole seconds, so that two reads in one window show the same end.
    const endsAtMs = Math.round((clock.nowMs() + window.leftMs) / 1_000) * 1_000;
    return { caller, availableMils: creditBalanceMils, state, window, windowEndsAt: new Date(endsAtMs) };
  };
}

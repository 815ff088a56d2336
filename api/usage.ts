import { readUsage, settleHolds, type WindowState } from "../shared/credits/holds.ts";
import { readPair } from "../shared/credits/ledger.ts";
import type { Caller } from "../shared/organizations/organizations.ts";
import type { ApiContext } from "./context.ts";
import { RateLimited, unavailable } from "./errors.ts";

/** What can be spent, in mils; and where the rate window stands, unless Redis could not be asked. */
export interface Usage {
  creditBalanceMils: number;
  window: WindowState | undefined;
}

/**
 * Reads an organization's balance less what is held, for one token of its window. Without Redis the balance comes from
 * Postgres, and nothing is known of holds or window.
 * @throws {CallerError} `rate_limited`, or `unavailable` where neither can be asked.
 */
export async function readUsageOf(context: ApiContext, caller: Caller): Promise<Usage> {
  return (await fromRedis(context, caller)) ?? (await fromPostgres(context, caller));
}

async function fromRedis(context: ApiContext, caller: Caller): Promise<Usage | undefined> {
  const { organizationId, plan } = caller;
  const first = await readUsage(context.redis, organizationId, plan).catch(() => undefined);
  if (!first) return undefined;
  if (first.outcome === "limited") throw new RateLimited("window", plan, first.window);
  if (first.outcome === "read") return { creditBalanceMils: first.availableMils, window: first.window };
  const pair = await pairOf(context, organizationId);
  const second = await settleHolds(context.redis, organizationId, pair, [])
    .then(() => readUsage(context.redis, organizationId, plan, true))
    .catch(() => undefined);
  return second && { creditBalanceMils: second.availableMils, window: second.window };
}

async function fromPostgres(context: ApiContext, { organizationId }: Caller): Promise<Usage> {
  const { balanceMils } = await pairOf(context, organizationId);
  return { creditBalanceMils: balanceMils, window: undefined };
}

async function pairOf(context: ApiContext, organizationId: string) {
  const pair = await readPair(context.database, organizationId).catch(() => undefined);
  if (!pair) throw unavailable("postgres_unreachable");
  return pair;
}

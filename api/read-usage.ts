import { z } from "zod";
import {
  readUsage as readUsageInRedis,
  settleHolds,
  type CreditState,
  type RateWindow,
} from "../shared/credits/holds.ts";
import { readBalance } from "../shared/credits/ledger.ts";
import { CallerError } from "../shared/errors.ts";
import type { Caller } from "../shared/organizations/organizations.ts";
import type { ApiContext } from "./context.ts";
import { RateLimited, unavailable } from "./errors.ts";

/** The body of the 200 of usage. */
export const usageResponseBody = z
  .strictObject({
    creditBalanceMils: z
      .int()
      .min(0)
      .meta({ description: "What can be spent now, in mils: the balance less what is held." }),
    plan: z.string().meta({ description: "The organization's plan." }),
  })
  .meta({ description: "What can be spent now, and the plan." });
export type UsageResponseBody = z.infer<typeof usageResponseBody>;

/** What can be spent, in mils; and where the rate window and holds stand, unless Redis could not be asked. */
export interface Usage {
  creditBalanceMils: number;
  window: RateWindow | undefined;
  standing: CreditState | undefined;
}

/** The body that every door answers with. */
export function serializeUsage({ plan }: Caller, { creditBalanceMils }: Usage): string {
  const answer: UsageResponseBody = { creditBalanceMils, plan: plan.code };
  return JSON.stringify(answer);
}

/** Why usage cannot be told. It has three errors; a defect is logged and told as the 503 among them. */
export function toUsageError({ log }: ApiContext, requestId: string, error: unknown): CallerError {
  if (error instanceof CallerError) return error;
  log.error({ err: error, requestId }, "a request failed by a defect");
  return unavailable("balance_unreadable");
}

/**
 * Reads an organization's balance less what is held, for one token of its window; `tokenTaken` takes none, where this
 * request has taken one before. Without Redis the balance comes from Postgres, and nothing is known of holds or window.
 * @throws {CallerError} `rate_limited`, or `unavailable` where neither can be asked.
 */
export async function readUsage(context: ApiContext, caller: Caller, tokenTaken = false): Promise<Usage> {
  return (await fromRedis(context, caller, tokenTaken)) ?? (await fromPostgres(context, caller));
}

async function fromRedis(context: ApiContext, caller: Caller, tokenTaken: boolean): Promise<Usage | undefined> {
  const { organizationId, plan } = caller;
  const first = await readUsageInRedis(context.redis, organizationId, plan, tokenTaken).catch(() => undefined);
  if (!first) return undefined;
  if (first.outcome === "limited") throw new RateLimited("window", plan, first.window);
  if (first.outcome === "read") return usageOf(first);
  const pair = await pairOf(context, organizationId);
  const second = await settleHolds(context.redis, organizationId, pair, [])
    .then(() => readUsageInRedis(context.redis, organizationId, plan, true))
    .catch(() => undefined);
  return second && usageOf(second);
}

const usageOf = ({ availableMils, window, standing }: Awaited<ReturnType<typeof readUsageInRedis>>): Usage => ({
  creditBalanceMils: availableMils,
  window,
  standing,
});

async function fromPostgres(context: ApiContext, { organizationId }: Caller): Promise<Usage> {
  const { balanceMils } = await pairOf(context, organizationId);
  return { creditBalanceMils: balanceMils, window: undefined, standing: undefined };
}

async function pairOf(context: ApiContext, organizationId: string) {
  const pair = await readBalance(context.database, organizationId).catch(() => undefined);
  if (!pair) throw unavailable("postgres_unreachable");
  return pair;
}

import type { Context } from "../../shared/process/context.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import type { PaymentOutcome } from "./credit-payment.ts";

/** Stores the new balance in Redis and announces a new plan to every API. Without this, both are picked up later. */
export async function publishTopup(
  { redis, log }: Pick<Context, "redis" | "log">,
  outcome: PaymentOutcome,
): Promise<void> {
  if (!("topup" in outcome)) return;
  const { organizationId, topup } = outcome;
  await storeBalance(redis, organizationId, topup.balance)
    .then(() => (topup.planChanged ? publishIdentityChange(redis) : undefined))
    .catch((error: unknown) => log.warn({ err: error, organizationId }, "a top-up is not yet in Redis"));
}

import type { Stripe } from "stripe";
import { claimDeletions, recordDeletion } from "../auto-topups/stripe-deletions.ts";
import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import type { Context } from "../../shared/process/context.ts";
import { stripeErrorFields } from "./stripe.ts";

const pauseMs = 5_000;
const deletionsPerRun = 5;

/** Has Stripe delete the cards and customers that payers and operators removed here. */
export function startStripeDeletions(
  { database, log, metrics, shutdown }: Pick<Context, "database" | "log" | "metrics" | "shutdown">,
  stripe: Stripe,
): void {
  const run = async () => {
    for (const { stripeId, attempts, isLast } of await claimDeletions(database, deletionsPerRun)) {
      const failed = await deleteAtStripe(stripe, stripeId);
      if (!failed) await recordDeletion(database, stripeId);
      else if (isLast)
        log.error({ stripeId, attempts, ...failed }, "Stripe did not delete this in all attempts: delete it there");
      else log.warn({ stripeId, attempts, ...failed }, "Stripe did not delete this yet");
    }
  };
  runPeriodically({ name: "stripe deletions", pauseMs, run, log, metrics, shutdown });
}

/** @returns the fields of the error that may be logged; undefined if it is gone at Stripe. */
async function deleteAtStripe(stripe: Stripe, stripeId: string) {
  try {
    if (stripeId.startsWith("cus_")) await stripe.customers.del(stripeId);
    else await stripe.paymentMethods.detach(stripeId);
    return undefined;
  } catch (error) {
    const fields = stripeErrorFields(error);
    // It is not there any more, or is not attached to a customer and so cannot be charged.
    return fields.statusCode === 404 || fields.statusCode === 400 ? undefined : fields;
  }
}

import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import type { Context } from "../../shared/process/context.ts";
import { claimEvents, type DueEvent, recordAttempt } from "../../shared/webhooks/webhook-events.ts";
import { openEventSender } from "./send-event.ts";

const pauseMs = 1_000;
/** Deliveries wait for receivers nearly all of their time. */
const deliveriesMax = 50;

type Delivering = Pick<Context, "config" | "database" | "log" | "metrics" | "shutdown">;

/**
 * Sends events to the webhooks of payers, as they become due: in each worker, at most one of an organization at a time. Does
 * nothing if the operator has turned webhooks off.
 */
export function deliverEvents(context: Delivering): void {
  const { config, database, log, metrics, shutdown } = context;
  if (config.WEBHOOK_TARGETS === "none") return;
  const sender = openEventSender(config.WEBHOOK_TARGETS);
  const running = new Map<string, Promise<void>>();
  shutdown.register("webhook deliveries", async () => {
    // A slow receiver must not delay the end of the process. Another worker repeats the deliveries that are cut off here.
    await sender.close();
    await Promise.all(running.values());
  });

  const deliver = async (event: DueEvent) => {
    const end = await sender.send(event);
    metrics.webhookDeliveries.inc({ outcome: end.outcome });
    const { givenUp } = await recordAttempt(database, event, end);
    if (!givenUp) return;
    metrics.webhookEventsGivenUp.inc();
    const { organizationId, eventId, attempts } = event;
    log.warn({ organizationId, eventId, attempts, ...end }, "an event was given up: its webhook did not accept it");
  };
  const run = async () => {
    const free = deliveriesMax - running.size;
    if (free === 0) return;
    for (const event of await claimEvents(database, { limit: free, without: [...running.keys()] })) {
      const { organizationId, eventId } = event;
      const delivery = deliver(event)
        // The event is sent again once its claim has expired.
        .catch((error: unknown) => log.warn({ err: error, organizationId, eventId }, "a delivery was not recorded"))
        .finally(() => running.delete(organizationId));
      running.set(organizationId, delivery);
    }
  };
  runPeriodically({ name: "webhooks", pauseMs, pausesFirst: true, run, log, metrics, shutdown });
}

import { Resolver } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { Agent, request } from "undici";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/process/context.ts";
import { type AttemptEnd, claimEvents, type DueEvent, recordAttempt } from "../shared/webhooks/webhook-events.ts";
import { addressIn, isPublicAddress, signEvent, type WebhookTargets } from "../shared/webhooks/webhooks.ts";

const pauseMs = 1_000;
/** Deliveries wait for receivers nearly all of their time. */
const deliveriesMax = 50;

type Delivering = Pick<Context, "config" | "database" | "log" | "metrics" | "shutdown">;

/**
 * Sends events to the webhooks of payers as they become due. Each worker sends at most one event of an organization at a time.
 * Does nothing if the operator has turned webhooks off.
 */
export function deliverEvents(context: Delivering): void {
  const { config, database, log, metrics, shutdown } = context;
  if (config.WEBHOOK_TARGETS === "none") return;
  const sender = openEventSender(config.WEBHOOK_TARGETS);
  const running = new Map<string, Promise<void>>();
  let isClosing = false;
  shutdown.register("webhook deliveries", async () => {
    // A slow receiver must not delay the end of the process. Another worker repeats the deliveries that are cut off here.
    isClosing = true;
    await sender.close();
    await Promise.all(running.values());
  });

  const deliver = async (event: DueEvent) => {
    const end = await sender.send(event);
    // Not the receiver's failure: it is sent again once its claim has expired.
    if (isClosing && end.outcome === "unreachable") return;
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

/** From looking up the name to the headers of the answer. */
const attemptMs = 10_000;
const connectMs = 5_000;
const lookupMs = 2_000;
const lookupTries = 2;

class AddressRefused extends Error {}

type Lookups = Pick<Resolver, "resolve4" | "resolve6">;

/** Sends events to the webhooks of payers. The payers choose the addresses, so nothing here trusts them. */
interface EventSender {
  /** Makes one attempt. Never throws. */
  send: (event: DueEvent) => Promise<AttemptEnd>;
  close: () => Promise<void>;
}

/**
 * Opens a sender. With the targets `public` each connection goes to an address that was looked up and checked for it, so a
 * name cannot change in between. Lookups use no threads of the process, which a slow name server would block. Redirects are
 * not followed, and the body of an answer is not read.
 * @param options.resolver finds addresses of names; by default as the system is set up.
 * @param options.isPublic whether a connection may be made to an address.
 */
export function openEventSender(
  targets: WebhookTargets,
  options: { resolver?: Lookups; isPublic?: (address: string) => boolean; timeoutMs?: number } = {},
): EventSender {
  const { resolver = new Resolver({ timeout: lookupMs, tries: lookupTries }), timeoutMs = attemptMs } = options;
  const isPublic = options.isPublic ?? isPublicAddress;
  // One for each attempt: one for all would keep connections whose address was checked earlier, and something in memory of each
  // address whose answer was cut off. Payers may name ever new ones.
  const agents = new Set<Agent>();
  const openAgent = () =>
    new Agent({
      connect: { timeout: connectMs, ...(targets === "public" && { lookup: lookupPublic(resolver, isPublic) }) },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  const isAllowed = (url: URL) => {
    if (targets === "any") return true;
    // An address needs no lookup. And the setting may have changed since the webhook was set.
    const address = addressIn(url);
    return targets === "public" && url.protocol === "https:" && (address === undefined || isPublic(address));
  };
  return {
    send: async (event) => {
      const agent = openAgent();
      agents.add(agent);
      const end = await attempt({ agent, isAllowed, timeoutMs }, event);
      agents.delete(agent);
      void agent.destroy();
      return end;
    },
    close: async () => void (await Promise.all([...agents].map((agent) => agent.destroy()))),
  };
}

async function attempt(
  { agent, isAllowed, timeoutMs }: { agent: Agent; isAllowed: (url: URL) => boolean; timeoutMs: number },
  event: DueEvent,
): Promise<AttemptEnd> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const url = new URL(event.url);
    if (!isAllowed(url)) return { outcome: "address_refused" };
    const answer = await request(url, {
      dispatcher: agent,
      method: "POST",
      headers: headersOf(event, new Date()),
      body: event.body,
      signal,
    });
    // Its end does not matter, and an error while it is destroyed says nothing about the delivery.
    answer.body.on("error", () => undefined).destroy();
    const { statusCode: status } = answer;
    return { outcome: status >= 200 && status < 300 ? "delivered" : "refused", status };
  } catch (error) {
    if (signal.aborted) return { outcome: "timeout" };
    return { outcome: error instanceof AddressRefused ? "address_refused" : "unreachable" };
  }
}

/** The headers of Standard Webhooks (https://www.standardwebhooks.com), with a signature for each valid secret. */
function headersOf({ eventId, body, secrets }: DueEvent, sentAt: Date): Record<string, string> {
  return {
    "content-type": "application/json",
    "user-agent": "Serpmill-Webhooks",
    "webhook-id": eventId,
    "webhook-timestamp": String(Math.floor(sentAt.getTime() / 1_000)),
    "webhook-signature": secrets.map((secret) => signEvent(secret, { eventId, sentAt, body })).join(" "),
  };
}

/** A lookup that fails if a name has no address, or one that is not of the internet. */
function lookupPublic(resolver: Lookups, isPublic: (address: string) => boolean): LookupFunction {
  const find = callbackify((hostname: string) => findPublic(resolver, isPublic, hostname));
  return (hostname, options, callback) =>
    find(hostname, (error, found) => {
      if (error) return callback(error, []);
      if (options.all) return callback(null, found);
      const [first] = found;
      callback(null, first?.address ?? "", first?.family);
    });
}

async function findPublic(resolver: Lookups, isPublic: (address: string) => boolean, hostname: string) {
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const found = [
    ...(four.status === "fulfilled" ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === "fulfilled" ? six.value.map((address) => ({ address, family: 6 })) : []),
  ];
  if (found.length === 0) throw new Error("the name has no address");
  if (!found.every(({ address }) => isPublic(address))) throw new AddressRefused("not a public address");
  return found;
}

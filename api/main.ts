import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../shared/process/context.ts";
import { Settlement } from "../shared/credits/settlement.ts";
import { requireSchema } from "../shared/database/require-schema.ts";
import { throttledWarning } from "../shared/log.ts";
import type { OpsParts } from "../shared/process/ops-server.ts";
import { startMeasuringMemory } from "../shared/redis/memory.ts";
import { startWatchdog } from "../shared/process/watchdog.ts";
import { startProcess } from "../shared/process/start-process.ts";
import { openSearchQueue } from "../shared/queue/search-queue.ts";
import { openSearchLog } from "../shared/search-log/search-log.ts";
import { type AppParts, createApp } from "./app.ts";
import { openAuthentication, openIdentify } from "./identify.ts";
import { openDoors } from "./doors/doors.ts";
import { openBilling } from "./billing/billing.ts";
import { isPublicUrlHttps } from "./http/security-headers.ts";
import { createHttpServer, openParserRefusals } from "./http/server.ts";
import { openQueueDashboard } from "./queue-dashboard.ts";
import { openUsage } from "./read-usage.ts";
import { AdmissionControl } from "./search/admission.ts";
import { openCancelSearch } from "./search/cancel-search.ts";
import { Delivery, DeliveryConfirmations } from "./search/delivery.ts";
import { Refunds } from "./search/refunds.ts";
import { PaidAnswers } from "./search/idempotency.ts";
import { openRefusedSearches } from "./search/refused-searches.ts";
import { openReplyInbox, type ReplyInbox } from "./search/reply-inbox.ts";
import { Search } from "./search/search.ts";
import { openShedding, type Shedding } from "./search/shedding.ts";
import { UnsentAnswers } from "./search/unsent-answers.ts";
import { handleStripeWebhook } from "./topups/stripe-webhook.ts";
import { openAutoTopups } from "./topups/auto-topups.ts";
import { openTopups } from "./topups/topups.ts";

// A load balancer that polls /readyz every second has taken this process out of rotation by then.
const readinessLeadMs = 2_000;
const idleCloseIntervalMs = 50;

await startProcess({ name: "api", databaseSizeMax: 5, opsPort: (config) => config.API_OPS_PORT, open: openApi });

/**
 * Shutdown in two phases: while `draining`, readiness is off and everything is still served, so that load balancers can
 * leave; once `stopping`, no new search is admitted and the searches under way are answered.
 */
async function openApi(context: Context): Promise<OpsParts> {
  const { shutdown, config, database, log } = context;
  const warnOfPostgres = throttledWarning(log, "this API cannot use Postgres");
  const draining = new AbortController();
  const stopping = new AbortController();
  const parts = await openParts(context, { draining: draining.signal, stopping: stopping.signal });
  const server = createHttpServer(createApp(parts), {
    isSecure: isPublicUrlHttps(config.PUBLIC_URL),
    refused: openParserRefusals(context),
  });
  await listen(server, stopping, { config, log, shutdown });
  startWatchdog(context, {
    isStuck: () => parts.replyInbox.leavesRepliesUnread(),
    problem: "workers have sent replies, and this API has read none for 10 s",
  });
  shutdown.register("readiness", () => {
    draining.abort();
    return sleep(readinessLeadMs);
  });
  return {
    checks: {
      redis: () => parts.replyInbox.check(),
      // The log has the cause: a refused password or certificate, no free connection, a missing migration.
      postgres: () =>
        requireSchema(database).catch((error: unknown) => {
          warnOfPostgres(error);
          throw error;
        }),
      workers_read: () => parts.shedding.check(),
      serving: async () => draining.signal.throwIfAborted(),
    },
    queues: openQueueDashboard(context),
  };
}

/** Opens everything that the routes use. What is opened first is closed last. */
async function openParts(
  context: Context,
  { draining, stopping }: { draining: AbortSignal; stopping: AbortSignal },
): Promise<AppParts & { replyInbox: ReplyInbox; shedding: Shedding }> {
  const { shutdown, config, redis, log, metrics } = context;
  const { SEARCH_DEADLINE_MS: searchTimeoutMs, TOPUP_URL: topupUrl } = config;
  const { authenticate, findByTokenHash } = openAuthentication(context);
  const identify = openIdentify(authenticate);
  const readUsage = openUsage(context);
  const [topups, autoTopups] = [await openTopups(context), await openAutoTopups(context)];

  const queue = await openSearchQueue(context);
  const settlement = new Settlement(context);
  const confirmations = new DeliveryConfirmations(context);
  const searchLog = openSearchLog(context, "api");
  const refusedSearches = openRefusedSearches(context, searchLog?.refused);
  const refunds = new Refunds({ settlement, confirmations, queue, redis, searchLog: searchLog?.searches, log });
  const shedding = openShedding({ ...context, draining, stopping });
  startMeasuringMemory(context);
  const paidAnswers = new PaidAnswers(context);
  const admission = new AdmissionControl({ ...context, shedding, paidAnswers, topupUrl });
  const replyInbox = openReplyInbox(context);
  const unsent = new UnsentAnswers(metrics);
  const search = new Search({ admission, queue, replyInbox, refunds, log });
  const delivery = new Delivery({ confirmations, metrics });
  // What REST, MCP and the playground need to run a search and send its answer.
  const searching = { search, delivery, unsent, searchTimeoutMs };
  shutdown.register("refunds and deliveries", () => refunds.idle());

  const stripeWebhook = topups && autoTopups && handleStripeWebhook(context, topups, autoTopups);
  const billing = openBilling({
    ...context,
    findByTokenHash,
    readUsage,
    topups,
    autoTopups,
    playground: { ...searching, cancelSearch: openCancelSearch({ ...context, refunds }) },
    draining,
  });
  const doors = openDoors({ ...context, identify, paidAnswers, ...searching });
  return {
    ...context,
    draining,
    refusedSearches,
    doors,
    identify,
    readUsage,
    ...searching,
    replyInbox,
    shedding,
    stripeWebhook,
    billing,
  };
}

async function listen(
  server: Server,
  stopping: AbortController,
  { config, log, shutdown }: Pick<Context, "config" | "log" | "shutdown">,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(config.API_PORT, config.HOST, resolve);
  });
  // A server that listens on TCP has an address with a port.
  log.info({ port: (server.address() as AddressInfo).port }, "listening");
  // Waits for the requests under way. Connections are closed as soon as they are idle.
  shutdown.register("http server", async () => {
    stopping.abort();
    const timer = setInterval(() => server.closeIdleConnections(), idleCloseIntervalMs);
    await new Promise((resolve) => server.close(resolve));
    clearInterval(timer);
  });
}

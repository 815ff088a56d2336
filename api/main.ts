import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../shared/context.ts";
import { openSettlement } from "../shared/credits/settlement.ts";
import { startOpsServer } from "../shared/process/ops-server.ts";
import { openSearchQueue } from "../shared/queue/search-queue.ts";
import { startProcess } from "../shared/process/start-process.ts";
import { createApp } from "./app.ts";
import { openAuthentication } from "./authenticate.ts";
import type { ApiContext } from "./context.ts";
import { DeliveryConfirmations } from "./search/delivery-confirmations.ts";
import { createHttpServer } from "./http/server.ts";
import { openReplyInbox } from "./search/reply-inbox.ts";
import { IdempotencyWaiters } from "./search/idempotency-waiters.ts";
import { openUsage } from "./read-usage.ts";
import { openShedding } from "./search/shedding.ts";
import { openTopups } from "./topups/topups.ts";

// Long enough for a load balancer that asks /readyz every second to look elsewhere.
const quietMs = 2_000;
const idleLookEveryMs = 50;

await startProcess({ name: "api", databaseSizeMax: 5, open: openApi });

async function openApi(shared: Context): Promise<void> {
  const { shutdown, config, database, redis } = shared;
  // First readiness ends while everything is still served, then nothing new is admitted.
  const draining = new AbortController();
  const stopping = new AbortController();
  const queue = await openSearchQueue(shared);
  const settlement = openSettlement(shared);
  const deliveries = new DeliveryConfirmations(shared);
  const context: ApiContext = {
    ...shared,
    settlement,
    deliveries,
    draining: draining.signal,
    ...openAuthentication(shared),
    readUsage: openUsage(shared),
    shedding: openShedding(shared, stopping.signal),
    queue,
    inbox: openReplyInbox(shared),
    keyWaits: new IdempotencyWaiters(redis),
    topups: await openTopups(shared),
  };
  shutdown.register("undos and deliveries", async () => {
    await settlement.idle();
    await deliveries.idle();
  });
  await listen(context, stopping);
  await startOpsServer(context, {
    port: config.API_OPS_PORT,
    checks: {
      redis: () => redis.ping(),
      postgres: () => database.query("select 1"),
      serving: async () => draining.signal.throwIfAborted(),
    },
  });
  shutdown.register("readiness", () => {
    draining.abort();
    return sleep(quietMs);
  });
}

async function listen(context: ApiContext, stopping: AbortController): Promise<void> {
  const { shutdown, config, log } = context;
  const server = createHttpServer(createApp(context));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(config.API_PORT, config.HOST, resolve);
  });
  // A server that listens on TCP has an address with a port.
  log.info({ port: (server.address() as AddressInfo).port }, "listening");
  // Searches under way are answered; connections that are idle, or become so, are closed.
  shutdown.register("http server", async () => {
    stopping.abort();
    const idle = setInterval(() => server.closeIdleConnections(), idleLookEveryMs);
    await new Promise((resolve) => server.close(resolve));
    clearInterval(idle);
  });
}

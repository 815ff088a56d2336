import { startPostgres } from "../../local/postgres.ts";
import { startRedis } from "../../local/redis.ts";
import { openBrowser } from "../harness/clients/browser.ts";
import { Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";
import type { PageState, Viewer } from "./open-state.ts";
import { openStates } from "./states.ts";

/** Starts servers, the service and a browser, uses all pages in their states, and stops everything. */
export async function withViewer(use: (viewer: Viewer, states: PageState[]) => Promise<void>): Promise<void> {
  const postgres = await startPostgres();
  const servers = { database: await freshDatabaseIn(postgres.url), redis: await startRedis() };
  const service = await Service.start({ servers });
  const stripe = await StripeStub.start();
  const browser = await openBrowser();
  try {
    await use({ browser, service }, await openStates(service, stripe));
  } finally {
    await browser.close();
    await stripe.close();
    await service.stop();
    await postgres.stop();
  }
}

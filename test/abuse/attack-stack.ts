import { startRedis } from "../../local/redis.ts";
import { Callers } from "../faults/scenarios/callers.ts";
import { type ScenarioServers, useAndClose } from "../faults/scenarios/scenario-stack.ts";
import { containerEnvironment } from "../harness/processes/container-heap.ts";
import { Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { startSerperStub } from "../harness/stubs/serper-stub.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";

export interface AttackStackOptions {
  workers?: number;
  /** Whether payments are enabled, with a stub of Stripe. */
  payments?: boolean;
  /** More settings for every process. */
  settings?: Record<string, string>;
}

export type AttackStack = Awaited<ReturnType<typeof openAttackStack>>;

/**
 * The whole service as real processes, with the heap of their containers. Stubs of a search provider and of Stripe count the
 * requests that they get. `callers` are well-behaved ones, on their own connections.
 */
export async function openAttackStack(servers: ScenarioServers, options: AttackStackOptions = {}) {
  const { postgresUrl, say, startRedis: start = startRedis } = servers;
  const { workers = 1, payments = false, settings } = options;
  const [database, redis, provider, stripe] = await Promise.all([
    freshDatabaseIn(postgresUrl),
    start(),
    startSerperStub(),
    StripeStub.start(),
  ]);
  const environment = {
    ...containerEnvironment,
    ...provider.settings,
    ...(payments && stripe.environment),
    ...settings,
  };
  const service = await Service.start({ workers, environment, servers: { database, redis } });
  const [api] = service.apis;
  if (!api) throw new Error("there is no API");
  const callers = new Callers();
  const close = async () => {
    await callers.close();
    await service.stop();
    await Promise.all([provider.close(), stripe.close()]);
  };
  return { service, api, apiUrl: api.url, provider, stripe, callers, say, close };
}

/** Opens a stack, uses it, and always closes it. */
export const withAttackStack = async <T>(
  servers: ScenarioServers,
  options: AttackStackOptions | undefined,
  use: (stack: AttackStack) => Promise<T>,
): Promise<T> => useAndClose(await openAttackStack(servers, options), use);

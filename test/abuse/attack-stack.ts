import { startRedis } from "../../local/redis.ts";
import { Callers } from "../faults/scenarios/callers.ts";
import { type ScenarioServers, useAndClose } from "../faults/scenarios/scenario-stack.ts";
import type { Say } from "../faults/report.ts";
import { containerEnvironment } from "../harness/processes/container-heap.ts";
import { type Api, Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";

export interface AttackStackOptions {
  workers?: number;
  /** Whether payments are enabled, with a stub of Stripe. */
  payments?: boolean;
  /** More settings for every process. */
  settings?: Record<string, string>;
}

/**
 * The whole service as real processes, with the heap of their containers. Stubs of a search provider and of Stripe count the
 * requests that they get.
 */
export class AttackStack {
  readonly service: Service;
  readonly provider: SerperStub;
  readonly stripe: StripeStub;
  /** Well-behaved callers, on their own connections. */
  readonly callers = new Callers();
  readonly say: Say;

  private constructor(parts: Pick<AttackStack, "service" | "provider" | "stripe" | "say">) {
    this.service = parts.service;
    this.provider = parts.provider;
    this.stripe = parts.stripe;
    this.say = parts.say;
  }

  static async open(servers: ScenarioServers, options: AttackStackOptions = {}): Promise<AttackStack> {
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
    return new AttackStack({ service, provider, stripe, say });
  }

  get api(): Api {
    const [api] = this.service.apis;
    if (!api) throw new Error("there is no API");
    return api;
  }

  get apiUrl(): string {
    return this.api.url;
  }

  async close(): Promise<void> {
    await this.callers.close();
    await this.service.stop();
    await Promise.all([this.provider.close(), this.stripe.close()]);
  }
}

/** Opens a stack, uses it, and always closes it. */
export const withAttackStack = async <T>(
  servers: ScenarioServers,
  options: AttackStackOptions | undefined,
  use: (stack: AttackStack) => Promise<T>,
): Promise<T> => useAndClose(await AttackStack.open(servers, options), use);

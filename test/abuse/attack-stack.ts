import { startRedis } from "../../local/redis.ts";
import type { LocalServer } from "../../local/local-server.ts";
import { Callers } from "../faults/scenarios/callers.ts";
import type { Say } from "../faults/report.ts";
import { containerNodeOptions } from "../harness/processes/container-heap.ts";
import { Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { type Proxy, startProxy } from "../harness/servers/proxy.ts";
import { type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";

/** The servers in which an attack runs. */
export interface AttackServers {
  /** A running Postgres, in which the attack makes a database of its own. */
  postgresUrl: string;
  say: Say;
  /** An empty Redis of its own; by default a process is started. */
  startRedis?: () => Promise<LocalServer>;
}

export interface AttackStackOptions {
  workers?: number;
  /** Whether payments are set up, at a stub of Stripe. */
  payments?: boolean;
  /** Whether the processes reach Redis through a proxy. */
  proxiedRedis?: boolean;
  /** Settings of every process, besides those that lead to the servers. */
  settings?: Record<string, string>;
}

/**
 * The whole service as real processes, with the heap that they have in their containers, and a search provider and a Stripe at
 * its edge that count what they are asked.
 */
export class AttackStack {
  readonly service: Service;
  readonly provider: SerperStub;
  readonly stripe: StripeStub;
  readonly redisProxy: Proxy;
  /** Callers with connections of their own, which behave. */
  readonly callers = new Callers();
  readonly say: Say;

  private constructor(parts: Pick<AttackStack, "service" | "provider" | "stripe" | "redisProxy" | "say">) {
    this.service = parts.service;
    this.provider = parts.provider;
    this.stripe = parts.stripe;
    this.redisProxy = parts.redisProxy;
    this.say = parts.say;
  }

  static async open(servers: AttackServers, options: AttackStackOptions = {}): Promise<AttackStack> {
    const { postgresUrl, say, startRedis: start = startRedis } = servers;
    const { workers = 1, payments = false, proxiedRedis = false, settings } = options;
    const [database, redis, provider, stripe] = await Promise.all([
      freshDatabaseIn(postgresUrl),
      start(),
      startSerperStub(),
      StripeStub.start(),
    ]);
    const redisProxy = await startProxy(redis.url);
    const environment = {
      NODE_OPTIONS: containerNodeOptions,
      ...provider.settings,
      ...(payments && stripe.environment),
      ...(proxiedRedis && { REDIS_URL: redisProxy.url }),
      ...settings,
    };
    const service = await Service.start({ workers, environment, servers: { database, redis } });
    return new AttackStack({ service, provider, stripe, redisProxy, say });
  }

  get apiUrl(): string {
    const url = this.service.apis[0]?.url;
    if (url === undefined) throw new Error("there is no API");
    return url;
  }

  async close(): Promise<void> {
    await this.callers.close();
    await this.service.stop();
    await Promise.all([this.provider.close(), this.stripe.close(), this.redisProxy.close()]);
  }
}

/** Opens a stack, uses it, and closes it whatever happens. */
export async function withAttackStack<T>(
  servers: AttackServers,
  options: AttackStackOptions | undefined,
  use: (stack: AttackStack) => Promise<T>,
): Promise<T> {
  const stack = await AttackStack.open(servers, options);
  try {
    return await use(stack);
  } finally {
    await stack.close();
  }
}

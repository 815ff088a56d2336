import { z } from "zod";
import { createQueue } from "../../../shared/queue/search-queue.ts";
import { seesWorkers } from "../../harness/assertions/metrics.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { openProvider, type ProviderStub } from "./provider.ts";
import { Servers } from "./servers.ts";
import { Slot } from "./slot.ts";

export const organizationsMax = 20;
export const priceMils = 5;
export const deadlineMs = 10_000;

/** What an organization of this world began with, and what the world gave it since. */
export interface Customer extends Organization {
  kind: "rich" | "tight" | "penniless" | "limited";
  grantedMils: number;
}

const usageAnswer = z.object({ creditBalanceMils: z.number() });
const clockJump = `--import=${new URL("./clock-jump.ts", import.meta.url).href}`;

const interrupted = () => process.exit(130);

/**
 * The whole service as it would run anywhere: two APIs, two workers, Postgres, Redis with an append-only file and a
 * provider, each process behind proxies of its own, so that everything can be hurt alone.
 */
export class Cluster {
  readonly servers: Servers;
  readonly service: Service;
  readonly provider: ProviderStub;
  readonly apis: readonly [Slot, Slot];
  readonly workers: readonly [Slot, Slot];
  readonly customers: Customer[] = [];
  readonly queue: ReturnType<typeof createQueue>;

  private constructor(parts: {
    servers: Servers;
    service: Service;
    provider: ProviderStub;
    apis: readonly [Slot, Slot];
    workers: readonly [Slot, Slot];
  }) {
    this.servers = parts.servers;
    this.service = parts.service;
    this.provider = parts.provider;
    this.apis = parts.apis;
    this.workers = parts.workers;
    this.queue = createQueue({ url: parts.servers.redis.url });
    this.queue.on("error", () => undefined); // Redis is killed on purpose.
  }

  static async open(options: { latencyMsOf: (keyword: string) => number }): Promise<Cluster> {
    const [servers, provider] = await Promise.all([Servers.open(), openProvider(options.latencyMsOf)]);
    const database = { url: servers.postgres.url, drop: async () => undefined };
    const service = await Service.start({ apis: 0, workers: 0, servers: { database, redis: servers.redis } });
    const environment = {
      NODE_OPTIONS: clockJump,
      SEARCH_DEADLINE_MS: String(deadlineMs),
      SERP_PROVIDERS: "serper",
      SERPER_API_KEY: "stub",
    };
    const slot = (kind: "api" | "worker", place: number) => {
      const outside = kind === "api" ? "http://127.0.0.1:1" : provider.url; // The API's port is known once it listens.
      const addresses = { postgres: servers.postgres.url, redis: servers.redis.url, outside };
      return Slot.open({ kind, place, addresses, environment });
    };
    const world = new Cluster({
      servers,
      service,
      provider,
      apis: [await slot("api", 0), await slot("api", 1)],
      workers: [await slot("worker", 0), await slot("worker", 1)],
    });
    await world.#settleIn();
    return world;
  }

  get slots(): readonly Slot[] {
    return [...this.apis, ...this.workers];
  }

  /** Starts what does not run, and waits until every process is ready. */
  async untilAllReady(): Promise<void> {
    for (const slot of this.slots) slot.start();
    for (const slot of this.slots) {
      await this.service.until(async () => (await fetch(`${await slot.opsUrl()}/readyz`)).ok, 60_000);
    }
    for (const api of this.apis)
      await this.service.until(async () => seesWorkers({ opsUrl: await api.opsUrl() }), 60_000);
  }

  /** Where callers reach a path of an API. */
  addressOf(api: 0 | 1, path: string): URL {
    return new URL(path, this.apis[api].ways.outside.url);
  }

  /** What the API says can be spent, once the rate window lets it. */
  async balanceOf(token: string): Promise<number> {
    let told: unknown;
    await this.service.until(async () => {
      const response = await fetch(this.addressOf(0, "/v1/usage"), {
        headers: { authorization: `Bearer ${token}` },
      });
      told = await response.json();
      return response.ok;
    });
    return usageAnswer.parse(told).creditBalanceMils;
  }

  async close(): Promise<void> {
    process.off("exit", this.#abandon).off("SIGINT", interrupted).off("SIGTERM", interrupted);
    await Promise.all(this.slots.map((slot) => slot.close()));
    await this.queue.close();
    await this.service.stop();
    await this.provider.close();
    await this.servers.close();
  }

  // Whoever interrupts the run finds nothing of it left behind.
  readonly #abandon = (): void => {
    for (const slot of this.slots) slot.kill();
    this.servers.abandon();
  };

  async #settleIn(): Promise<void> {
    process.on("exit", this.#abandon).on("SIGINT", interrupted).on("SIGTERM", interrupted);
    for (let n = 0; n < organizationsMax; n += 1) {
      const kind = n < 10 ? "rich" : n < 16 ? "tight" : n < 18 ? "penniless" : "limited";
      const grantedMils = { rich: 100_000, tight: 40 * priceMils, penniless: 0, limited: 100_000 }[kind];
      const terms = kind === "limited" ? { windowLimit: 20, windowSeconds: 5, concurrency: 4 } : {};
      const organization = await this.service.organization({ creditMils: grantedMils, terms });
      this.customers.push({ ...organization, kind, grantedMils });
    }
    await this.untilAllReady();
  }
}

import { z } from "zod";
import type { Plan } from "../../../shared/credits/plans.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { createQueue } from "../../../shared/queue/search-queue.ts";
import { headerScopes, type Scope } from "../../../shared/organizations/organizations.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { priceMils } from "../audit/evidence.ts";
import { ClusterProcess } from "./cluster-process.ts";
import { Corrections } from "./corrections.ts";
import { LimitChanges } from "./limits.ts";
import { openProvider, type ProviderStub } from "./provider.ts";
import { Servers } from "./servers.ts";

export const organizationsMax = 20;
export const deadlineMs = 10_000;

export interface CustomerToken {
  token: string;
  tokenId: string;
  scopes: readonly Scope[];
}

/** An organization of the cluster, with the sum of its grants. */
export interface Customer extends Organization {
  /**
   * `paged` has a price per page, `capped` has spending limits that change, `tight` has little credit, `limited` has a small
   * rate window.
   */
  kind: "rich" | "paged" | "capped" | "tight" | "penniless" | "limited";
  grantedMils: number;
  /** The first one is `token` and has all scopes. */
  tokens: readonly [CustomerToken, ...CustomerToken[]];
}

const termsOf: Partial<Record<Customer["kind"], Partial<Plan>>> = {
  limited: { windowLimit: 20, windowSeconds: 5, concurrency: 4 },
  paged: { pricePerPageMils: priceMils },
};

const depthOf = z.object({ depth: z.number().default(10) });

/** The price of a search with these fields. A page has ten results. */
export const priceOf = ({ kind }: Pick<Customer, "kind">, fields: object): number =>
  kind === "paged" ? priceMils * Math.ceil(depthOf.parse(fields).depth / 10) : priceMils;

const clockJump = `--import=${new URL("./clock-jump.ts", import.meta.url).href}`;

/**
 * The whole service as an operator runs it: two APIs, two workers, Postgres, Redis with an append-only file, and a provider.
 * Each process has its own proxies, so that everything can fail alone.
 */
export class Cluster {
  readonly servers: Servers;
  readonly service: Service;
  readonly provider: ProviderStub;
  readonly apis: readonly [ClusterProcess, ClusterProcess];
  readonly workers: readonly [ClusterProcess, ClusterProcess];
  readonly customers: Customer[] = [];
  readonly limits: LimitChanges;
  readonly corrections: Corrections;
  readonly queue: ReturnType<typeof createQueue>;

  private constructor(parts: {
    servers: Servers;
    service: Service;
    provider: ProviderStub;
    apis: readonly [ClusterProcess, ClusterProcess];
    workers: readonly [ClusterProcess, ClusterProcess];
  }) {
    this.servers = parts.servers;
    this.service = parts.service;
    this.provider = parts.provider;
    this.apis = parts.apis;
    this.workers = parts.workers;
    this.limits = new LimitChanges(parts.service);
    this.corrections = new Corrections(parts.service);
    this.queue = createQueue({ url: parts.servers.redis.url });
    this.queue.on("error", () => undefined); // Redis is killed on purpose.
  }

  /** @param options.latencyMsOf how long the provider takes for a keyword. */
  static async open(options: { latencyMsOf: (keyword: string) => number }): Promise<Cluster> {
    const [servers, provider] = await Promise.all([Servers.open(), openProvider(options.latencyMsOf)]);
    const processUrl = processUrlOf(servers.postgres.url);
    const database = { url: servers.postgres.url, drop: async () => undefined };
    const service = await Service.start({ apis: 0, workers: 0, servers: { database, redis: servers.redis } });
    const environment = {
      ...service.environment,
      NODE_OPTIONS: clockJump,
      SEARCH_DEADLINE_MS: String(deadlineMs),
      SERP_PROVIDERS: "serper",
      SERPER_API_KEY: "stub",
    };
    const open = (kind: "api" | "worker", number: number) => {
      const outside = kind === "api" ? "http://127.0.0.1:1" : provider.url; // The API's port is known once it listens.
      const addresses = { postgres: processUrl, redis: servers.redis.url, outside };
      return ClusterProcess.open({ kind, number, addresses, environment });
    };
    const cluster = new Cluster({
      servers,
      service,
      provider,
      apis: [await open("api", 0), await open("api", 1)],
      workers: [await open("worker", 0), await open("worker", 1)],
    });
    await cluster.#prepare().catch(async (error: unknown) => {
      await cluster.close();
      throw error;
    });
    return cluster;
  }

  get organizationIds(): string[] {
    return this.customers.map(({ organizationId }) => organizationId);
  }

  get processes(): readonly ClusterProcess[] {
    return [...this.apis, ...this.workers];
  }

  /** Starts the processes that do not run, and waits until all are ready. */
  async untilReady(): Promise<void> {
    for (const process of this.processes) process.start();
    for (const process of this.processes) await process.ready();
  }

  /** The address of a path of an API, for callers. */
  addressOf(api: 0 | 1, path: string): URL {
    return new URL(path, this.apis[api].links.outside.url);
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.close()));
    await this.queue.close();
    await this.service.stop();
    await this.provider.close();
    await this.servers.close();
  }

  async #prepare(): Promise<void> {
    for (let n = 0; n < organizationsMax; n += 1) {
      const kind =
        n < 7 ? "rich" : n < 8 ? "paged" : n < 12 ? "capped" : n < 16 ? "tight" : n < 18 ? "penniless" : "limited";
      const grantedMils = {
        tight: 40 * priceMils,
        penniless: 0,
        rich: 100_000,
        paged: 100_000,
        capped: 100_000,
        limited: 100_000,
      }[kind];
      const terms = termsOf[kind] ?? {};
      const organization = await this.service.organization({ creditMils: grantedMils, terms });
      const own = { ...organization, scopes: headerScopes };
      const tokens: Customer["tokens"] = kind === "capped" ? [own, ...(await this.#cap(organization))] : [own];
      this.customers.push({ ...organization, kind, grantedMils, tokens });
    }
    await this.untilReady();
  }

  /** Sets limits for an organization and its token. @returns a limited token with the scope `search`, and one with `usage`. */
  async #cap({ organizationId, tokenId }: Organization): Promise<CustomerToken[]> {
    const issue = (scope: Scope) => this.service.issue(organizationId, { scopes: [scope] });
    const searching = await issue("search");
    await this.limits.change({ kind: "organization", organizationId, id: organizationId }, { dayMils: 20 * priceMils });
    await this.limits.change({ kind: "token", organizationId, id: tokenId }, { dayMils: 4 * priceMils });
    await this.limits.change({ kind: "token", organizationId, id: searching.tokenId }, { monthMils: 3 * priceMils });
    return [searching, await issue("usage")];
  }
}

/** The token of a planned search or request. */
export const tokenOf = ({ tokens }: Customer, nth: number): CustomerToken => tokens[nth % tokens.length] ?? tokens[0];

import { Redis } from "ioredis";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { holdIndexKey, keysOf } from "../../../shared/credits/redis-keys.ts";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { type Plan, setPlan } from "../../../shared/credits/plans.ts";
import { type VerificationReport, verifyLedger } from "../../../commands/ledger.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { startRedis } from "../../../local/redis.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { openLog } from "../../../shared/log.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { type IssuedToken, issueToken, type TokenTerms } from "../../../api/tokens/tokens.ts";
import type { FreshDatabase } from "../servers/fresh-database.ts";
import { seesWorkers } from "../assertions/metrics.ts";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import { asOwner } from "../servers/as-owner.ts";
import { RunningProcess } from "./process.ts";
import { usualSettings } from "./supervised-process.ts";
import { openPatiently } from "../servers/open-database.ts";
import { freshDatabase, freshRedis } from "../servers/servers.ts";
import { eventually } from "../assertions/eventually.ts";

const warningsShown = 10;
const answerCharactersShown = 500;

/** An API process and where it listens. */
export interface Api extends RunningProcess {
  url: string;
  opsUrl: string;
}

export interface Worker extends RunningProcess {
  opsUrl: string;
}

export interface Organization {
  organizationId: string;
  token: string;
  tokenId: string;
}

/** An answer as a caller sees it. `body` is parsed JSON; `text` its bytes. */
export interface Answer {
  status: number;
  headers: Headers;
  /** From the header; '' if there is none. */
  requestId: string;
  text: string;
  // biome-ignore lint: a test reads any field of any answer and asserts its value.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

/**
 * The whole service with its own servers: a fresh database, a Redis process, and as many APIs and workers as a test
 * wants, each a real process. Only the search provider is a stub, if a test sets one.
 */
export class Service {
  readonly database: Database;
  readonly databaseUrl: string; // As its owner, and as the role that the processes log in with:
  readonly processDatabaseUrl: string;
  readonly redis: Redis;
  redisServer: LocalServer;
  readonly apis: Api[] = [];
  readonly workers: Worker[] = [];
  /** The settings of a process of this service. */
  readonly environment: Record<string, string>;
  readonly #shutdown: Shutdown;
  readonly #drop: () => Promise<void>;
  #latestAnswer: unknown;

  private constructor(parts: {
    databaseUrl: string;
    drop: () => Promise<void>;
    redisServer: LocalServer;
    environment: Record<string, string>;
  }) {
    const log = openLog({ name: "test", level: "silent" });
    this.#shutdown = new Shutdown();
    this.#drop = parts.drop;
    this.databaseUrl = parts.databaseUrl;
    this.processDatabaseUrl = processUrlOf(parts.databaseUrl);
    this.redisServer = parts.redisServer;
    this.redis = new Redis(parts.redisServer.url);
    this.redis.on("error", () => undefined); // Tests kill the server on purpose.
    const { processDatabaseUrl: url } = this;
    this.database = openPatiently({ url, sizeMax: 3, log, shutdown: this.#shutdown });
    this.environment = { ...usualSettings, DATABASE_URL: url, REDIS_URL: this.redisServer.url, ...parts.environment };
  }

  /**
   * Opens servers, or uses the given ones, and starts the processes. Resolves when every process is ready.
   * @param options.end gets what stops it, as `afterAll` does.
   */
  static async start(
    options: {
      apis?: number;
      workers?: number;
      environment?: Record<string, string>;
      servers?: { database: FreshDatabase; redis: LocalServer };
      end?: (stop: () => Promise<void>) => void;
    } = {},
  ) {
    const [{ url, drop }, redisServer] = options.servers
      ? [options.servers.database, options.servers.redis]
      : await Promise.all([freshDatabase(), freshRedis()]);
    const service = new Service({ databaseUrl: url, drop, redisServer, environment: options.environment ?? {} });
    options.end?.(() => service.stop());
    const { apis = 1, workers = 1 } = options;
    // The workers first: an API reads their heartbeats at its start, and then only once a second.
    await Promise.all(Array.from({ length: workers }, () => service.startWorker()));
    await Promise.all(Array.from({ length: apis }, () => service.startApi()));
    if (workers > 0) await Promise.all(service.apis.map((api) => service.until(() => seesWorkers(api))));
    return service;
  }

  /** `checkout`: a folder with another release. */
  async startApi(environment: Record<string, string> = {}, checkout?: string): Promise<Api> {
    const api = new RunningProcess("api/main.ts", { ...this.environment, ...environment }, { checkout });
    const url = `http://127.0.0.1:${String((await api.line("listening")).port)}`;
    const opsUrl = `http://127.0.0.1:${String((await api.line("ops port open")).port)}`;
    const started = Object.assign(api, { url, opsUrl });
    this.apis.push(started);
    return started;
  }

  async startWorker(environment: Record<string, string> = {}, checkout?: string): Promise<Worker> {
    const worker = new RunningProcess("worker/main.ts", { ...this.environment, ...environment }, { checkout });
    const opsUrl = `http://127.0.0.1:${String((await worker.line("ops port open")).port)}`;
    const started = Object.assign(worker, { opsUrl });
    this.workers.push(started);
    await this.until(async () => (await fetch(`${opsUrl}/readyz`)).ok);
    return started;
  }

  /** An organization with a token, by default with all scopes but `door`. `terms` are those of a new plan; the others are those of `payg`. */
  async organization(
    options: { creditMils?: number; plan?: string; terms?: Partial<Plan> } & Pick<
      TokenTerms,
      "scopes" | "dayMils"
    > = {},
  ): Promise<Organization> {
    let planCode = options.plan ?? "payg";
    if (options.terms) {
      planCode = `p${newId("org").slice(-20)}`;
      const payg = { priceMils: 5, windowLimit: 100_000, windowSeconds: 60, concurrency: 1_000 };
      await setPlan(this.database, {
        ...payg,
        operations: ["serp.search", "usage.get"],
        ...options.terms,
        code: planCode,
      });
    }
    const made = await createOrganization(this.database, { name: "Test", planCode });
    if (!made) throw new Error(`no plan ${planCode}`);
    const { organizationId } = made;
    const mils = options.creditMils ?? 1_000;
    if (mils > 0) await grantCredit(this.database, { organizationId, grantId: newId("grant"), mils, reason: "test" });
    const { scopes, dayMils } = options;
    return { organizationId, ...(await this.issue(organizationId, { scopes, dayMils })) };
  }

  /** Another token of an organization. */
  async issue(organizationId: string, terms?: TokenTerms): Promise<IssuedToken> {
    const issued = await issueToken(this.database, organizationId, terms);
    if (!issued) throw new Error(`no organization ${organizationId}`);
    return issued;
  }

  /** POST /v1/serp/search as a caller sends it; `api` chooses the process. */
  async search(
    token: string,
    body: unknown,
    options: { key?: string; api?: number; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    return this.send("/v1/serp/search", {
      api: options.api ?? 0,
      method: "POST",
      ...(options.signal && { signal: options.signal }),
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(options.key !== undefined && { "idempotency-key": options.key }),
      },
      body: JSON.stringify(body),
    });
  }

  async usage(token: string, api = 0): Promise<Answer> {
    return this.send("/v1/usage", { api, headers: { authorization: `Bearer ${token}` } });
  }

  async send(path: string, { api = 0, ...init }: RequestInit & { api?: number } = {}): Promise<Answer> {
    const process = this.apis[api];
    if (!process) throw new Error(`there is no API ${api}`);
    const response = await fetch(process.url + path, init);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    this.#latestAnswer = { at: new Date(), path, status: response.status, text: text.slice(0, answerCharactersShown) };
    const { status, headers } = response;
    const requestId = headers.get("x-request-id") ?? "";
    return { status, headers, requestId, text, body: isJson ? JSON.parse(text) : undefined };
  }

  /** An organization's holds in Redis: their number and their sum. */
  async holdsOf(organizationId: string): Promise<{ open: number; heldMils: number }> {
    const { held = "0", ...holds } = await this.redis.hgetall(keysOf(organizationId).holds);
    return { open: Object.keys(holds).length, heldMils: Number(held) };
  }

  /** Waits until the log has a search. @returns its request id. */
  async logged({ requestId }: Answer): Promise<string> {
    await this.until(async () => {
      const { rows } = await this.database.query("select from search_log where request_id = $1", [requestId]);
      return rows.length === 1;
    });
    return requestId;
  }

  /** Waits until workers run at least this many searches at once. The job of one whose hold has ended may end a little later. */
  async untilRunning(count: number): Promise<void> {
    await this.until(async () => {
      const [running, holds] = await Promise.all([
        this.redis.lrange(queueKeys.running, 0, -1),
        this.redis.zrange(holdIndexKey, 0, "-1"),
      ]);
      const open = new Set(holds.map((hold) => hold.split("|")[1]));
      return running.filter((requestId) => open.has(requestId)).length >= count;
    });
  }

  /** The entries of the organization's ledger and its refunds, oldest first. */
  async ledgerOf(organizationId: string): Promise<{ kind: string; mils: number; requestId: string; reason: string }[]> {
    const text = `select kind, mils, request_id as "requestId", reason from (
         select version, 0 as number, kind, amount_mils as mils, request_id, reason from ledger_entries where organization_id = $1
         union all select version, number, 'refund', 0, request_id, reason from refunds where organization_id = $1 order by 1, 2) e`;
    return (await this.database.query(text, [organizationId])).rows;
  }

  /** Waits until nothing is in flight. @returns the entries of the organization's searches: those after its first grant. */
  async chargesOf({ organizationId }: Pick<Organization, "organizationId">): Promise<{ kind: string; mils: number }[]> {
    await this.rest();
    return (await this.ledgerOf(organizationId)).slice(1).map(({ kind, mils }) => ({ kind, mils }));
  }

  /** Waits until nothing is in flight any more, of all organizations or of one: no hold, nothing undelivered. */
  async rest(organizationId?: string): Promise<void> {
    await this.until(async () => {
      const { rows } = await this.database.query(
        "select count(*) as open from undelivered where $1::text is null or organization_id = $1",
        [organizationId],
      );
      if (rows[0].open !== 0) return false;
      const holds =
        organizationId === undefined ? await this.redis.keys("{org_*}:holds") : [keysOf(organizationId).holds];
      for (const key of holds) {
        if ((await this.redis.hget(key, "held")) !== "0" || (await this.redis.hlen(key)) > 1) return false;
      }
      return true;
    });
  }

  /** Starts an empty Redis at the address of the stopped one. */
  async restartRedis(port: number): Promise<void> {
    await this.redisServer.stop(); // It has ended; this removes its folder.
    this.redisServer = await startRedis({ port });
  }

  /** Makes every charge that waits for its confirmation look six minutes old. */
  async age(): Promise<void> {
    await asOwner(this.databaseUrl, "update undelivered set charged_at = charged_at - interval '6 minutes'");
  }

  async verify(): Promise<VerificationReport> {
    return verifyLedger(this.database, this.redis, { isFull: true });
  }

  /** Like {@link eventually}. @throws an error that shows the latest answer and the latest warnings of each process. */
  async until(isTrue: () => Promise<boolean>, boundMs?: number): Promise<void> {
    try {
      await eventually(isTrue, boundMs);
    } catch (error) {
      const warnings = [...this.apis, ...this.workers].flatMap(({ warnings: all }) => all.slice(-warningsShown));
      const shown = [this.#latestAnswer, ...warnings].map((each) => JSON.stringify(each));
      throw new Error([error instanceof Error ? error.message : error, ...shown].join("\n"), { cause: error });
    }
  }

  /** Ends all processes and servers. A graceful stop of an API takes two seconds, so processes are killed here. */
  async stop(): Promise<void> {
    await Promise.all([...this.apis, ...this.workers].map((process) => process.destroy()));
    await this.#shutdown.run(openLog({ name: "test", level: "silent" }));
    this.redis.disconnect();
    await this.redisServer.stop();
    await this.#drop();
  }
}

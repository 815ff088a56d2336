import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import express from "express";
import { createHttpServer } from "../../../api/http/server.ts";
import { openRequestScope } from "../../../api/http/request-scope.ts";
import { handleMcp } from "../../../api/mcp/endpoint.ts";
import { Delivery } from "../../../api/search/delivery.ts";
import { handleSearch } from "../../../api/v1/search.ts";
import { readConfig } from "../../../shared/config.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import type { Plan } from "../../../shared/credits/plans.ts";

const plan: Plan = {
  code: "payg",
  priceMils: 5,
  windowLimit: 600,
  windowSeconds: 60,
  concurrency: 100,
  startingGrantMils: 0,
  operations: ["serp.search", "usage.get"],
};

// More than the buffers of both ends take while the caller does not read.
const large = Buffer.alloc(16 * 1024 * 1024, "a");

/** The HTTP side of the API without Redis and Postgres: every search is answered at once and charged. */
export class AnsweringApi {
  readonly url: string;
  /** What delivery decided about the charges, in order. */
  readonly decisions: ("confirmed" | "reversed")[];
  readonly #close: () => void;

  private constructor(parts: Pick<AnsweringApi, "url" | "decisions"> & { close: () => void }) {
    this.url = parts.url;
    this.decisions = parts.decisions;
    this.#close = parts.close;
  }

  /** `body` is the answer of every search, `searchMs` how long one takes, `deliveryMs` the time to take an answer. */
  static async start(given: { body: string; searchMs?: number; deliveryMs?: number }): Promise<AnsweringApi> {
    const decisions: AnsweringApi["decisions"] = [];
    const confirmations = {
      confirm: () => void decisions.push("confirmed"),
      reverse: () => void decisions.push("reversed"),
    };
    const log = openLog({ name: "test", level: "silent" });
    const metrics = openMetrics();
    const timeoutMs = given.deliveryMs === undefined ? {} : { timeoutMs: given.deliveryMs };
    const parts = {
      config: readConfig({ DATABASE_URL: "postgres://a/b", REDIS_URL: "redis://a" }),
      log,
      metrics,
      authenticate: async () => ({ organizationId: "org_1", suspended: false, plan }),
      search: {
        run: async ({ requestId }: { requestId: string }) => {
          await sleep(given.searchMs ?? 0);
          const window = { used: 1, leftMs: 1_000 };
          return {
            requestId,
            body: Buffer.from(given.body),
            replayed: false,
            window,
            chargedMils: 5,
            trace: undefined,
          };
        },
      },
      delivery: new Delivery({ confirmations, metrics, ...timeoutMs }),
      readUsage: async () => ({ creditBalanceMils: 0, window: undefined, creditState: undefined }),
      searchTimeoutMs: 30_000,
      topupUrl: "",
    };
    const app = express();
    app.use((_request, response, next) => {
      openRequestScope({ log, metrics, draining: new AbortController().signal }, response);
      next();
    });
    app.get("/large", (_request, response) => void response.end(large));
    app.post("/v1/serp/search", handleSearch(parts));
    app.post("/mcp", handleMcp(parts));
    const server = createHttpServer(app);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // A server that listens on TCP has an address with a port.
    const { port } = server.address() as AddressInfo;
    const close = () => {
      server.close();
      server.closeAllConnections();
    };
    return new AnsweringApi({ url: `http://127.0.0.1:${port}`, decisions, close });
  }

  stop(): void {
    this.#close();
  }
}

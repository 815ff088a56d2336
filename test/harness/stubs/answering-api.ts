import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import express, { type NextFunction, type Request, type Response } from "express";
import { recordError } from "../../../api/errors.ts";
import { openRequestScope } from "../../../api/http/request-scope.ts";
import { sendError } from "../../../api/http/send-error.ts";
import { createHttpServer } from "../../../api/http/server.ts";
import { openIdentify } from "../../../api/identify.ts";
import { handleMcp } from "../../../api/mcp/endpoint.ts";
import { Delivery } from "../../../api/search/delivery.ts";
import { UnsentAnswers } from "../../../api/search/unsent-answers.ts";
import { handleSearch } from "../../../api/v1/search.ts";
import { handleUsage } from "../../../api/read-usage.ts";
import { readConfig } from "../../../shared/config.ts";
import type { Plan } from "../../../shared/credits/plans.ts";
import { CallerError } from "../../../shared/errors.ts";
import { openLog } from "../../../shared/log.ts";
import { noTracing } from "../../../shared/tracing/spans.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import type { Scope } from "../../../shared/organizations/organizations.ts";
import { callerWith } from "../fixtures/caller.ts";
import { listenOn } from "./listen.ts";

// More than the buffers of both ends take while the caller does not read.
const large = Buffer.alloc(16 * 1024 * 1024, "a");

/** What the searches of an {@link startAnsweringApi} do. */
export interface Given {
  /** The body of every answer. */
  body: string;
  replayed?: boolean;
  /** Every search fails with it. */
  error?: CallerError;
  searchMs?: number;
  /** How long a caller may take for an answer. */
  deliveryMs?: number;
  plan?: Partial<Plan>;
  /** What every token may do; all by default. */
  scopes?: readonly Scope[];
}

export type AnsweringApi = Awaited<ReturnType<typeof startAnsweringApi>>;
/** What delivery decided about the charges, in order. */
type Decisions = ("confirmed" | "reversed")[];

/** The HTTP side of the API without Redis and Postgres. A token is the id of its organization; every search is charged. */
export async function startAnsweringApi(given: Given) {
  const decisions: Decisions = [];
  const metrics = openMetrics();
  const server = createHttpServer(createApp(given, decisions, metrics));
  return {
    url: `http://127.0.0.1:${await listenOn(server)}`,
    decisions,
    unsentBytes: async () => (await metrics.unsentBytes.get()).values[0]?.value ?? 0,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function createApp(given: Given, decisions: Decisions, metrics: ReturnType<typeof openMetrics>) {
  const log = openLog({ name: "test", level: "silent" });
  const parts = partsOf(given, decisions, metrics, log);
  const app = express();
  app.use((request, response, next) => {
    const draining = new AbortController().signal;
    openRequestScope({ log, metrics, draining, tracing: noTracing, publicUrl: undefined }, request, response);
    next();
  });
  app.get("/large", (_request, response) => void response.end(large));
  app.get("/v1/usage", handleUsage(parts));
  app.post("/v1/serp/search", handleSearch(parts));
  app.post("/mcp", handleMcp(parts));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (error instanceof CallerError) {
      recordError(response, error);
      sendError(request, response, error);
    } else response.status(500).end(inspect(error)); // A defect.
  });
  return app;
}

function partsOf(
  given: Given,
  decisions: Decisions,
  metrics: ReturnType<typeof openMetrics>,
  log: ReturnType<typeof openLog>,
) {
  const { body, replayed = false, error, searchMs = 0, deliveryMs } = given;
  const window = { used: 1, leftMs: 1_000 };
  const run = async ({ requestId }: { requestId: string }) => {
    await sleep(searchMs);
    if (error) throw error;
    return { requestId, body: Buffer.from(body), replayed, window, chargedMils: 5, trace: undefined };
  };
  const confirmations = {
    confirm: () => void decisions.push("confirmed"),
    reverse: async () => void decisions.push("reversed"),
  };
  const timeLimit = deliveryMs === undefined ? {} : { timeoutMs: deliveryMs };
  const unsent = new UnsentAnswers(metrics);
  return {
    config: readConfig({ DATABASE_URL: "postgres://a/b", REDIS_URL: "redis://a", SERP_PROVIDERS: "sandbox" }),
    log,
    metrics,
    identify: openIdentify(async ({ headers: { authorization: organizationId = "" } }) =>
      callerWith({ organizationId, ...(given.scopes && { scopes: given.scopes }) }, given.plan),
    ),
    unsent,
    search: { run },
    delivery: new Delivery({ confirmations, metrics, ...timeLimit }),
    readUsage: async () => ({ creditBalanceMils: 0, window, creditState: undefined }),
    searchTimeoutMs: 30_000,
  };
}

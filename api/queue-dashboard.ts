import type { RequestListener, ServerResponse } from "node:http";
import type { BeforeHook } from "@bull-board/api/typings/app";
import type { Express, NextFunction, Request, Response } from "express";
import type { Redis } from "ioredis";
import type { Context } from "../shared/process/context.ts";
import { pageHeaders } from "./http/page-headers.ts";
import { throttledWarning } from "../shared/log.ts";
import { whenReady } from "../shared/redis/connect.ts";
import { openQueueReader } from "../shared/queue/search-queue.ts";

/**
 * The dashboard of the queue, Bull Board, under /queues on the ops port. It only reads: an action on a job would bypass
 * holds, deadlines and the worker's decision about money. Nothing of it is loaded or connected before the first visit. It
 * has a connection to Redis of its own, so that its long answers do not delay the replies to a search's commands.
 */

const path = "/queues";
const openTimeoutMs = 2_000;
// For each of the seven states of a job. Bull Board itself has no limit, and reads every job with a command of its own.
const jobsPerPageMax = 50;
// A page polls: every open one once in this time.
const pollIntervalSeconds = 10;

/** Bull Board loads a font from another site, which the policy prevents, and it inserts styles. Its scripts are files. */
const headers = {
  ...pageHeaders({
    "style-src": "'self' 'unsafe-inline'",
    "font-src": "'none'",
    "img-src": "'self' data:",
    "base-uri": "'self'",
  }),
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

export function openQueueDashboard({ connections, log }: Pick<Context, "connections" | "log">): RequestListener {
  let redis: Redis | undefined;
  let opened: Promise<boolean> | undefined;
  let dashboard: Promise<Express> | undefined;
  const warn = throttledWarning(log, "queue dashboard error");

  const connect = async (): Promise<Redis> => {
    redis ??= connections.openCommands("queue-dashboard");
    opened ??= whenReady(redis, openTimeoutMs);
    if (!(await opened)) opened = undefined;
    await redis.ping();
    return redis;
  };

  const serve: (...args: Parameters<RequestListener>) => Promise<void> = async (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    let connected: Redis;
    try {
      connected = await connect();
    } catch {
      return answer(response, 503, "Redis does not answer\n");
    }
    dashboard ??= createDashboard(connected, warn);
    const show = await dashboard;
    show(request, response);
  };
  return (request, response) => {
    serve(request, response).catch((error: unknown) => {
      dashboard = undefined;
      warn(error);
      answer(response, 500, "the dashboard could not be loaded\n");
    });
  };
}

function answer(response: ServerResponse, status: number, text: string): void {
  const length = Buffer.byteLength(text);
  response.writeHead(status, { "content-type": "text/plain", "content-length": length });
  response.end(text);
}

const limitPage: BeforeHook = async ({ request }) => {
  const { jobsPerPage } = request.query;
  if (Number(jobsPerPage) > jobsPerPageMax) request.query = { ...request.query, jobsPerPage: `${jobsPerPageMax}` };
};

async function createDashboard(redis: Redis, warn: (error: unknown) => void): Promise<Express> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }, { default: express }] = await Promise.all([
    import("@bull-board/api"),
    import("@bull-board/api/bullMQAdapter"),
    import("@bull-board/express"),
    import("express"),
  ]);
  const serverAdapter = new ExpressAdapter().setBasePath(path);
  createBullBoard({
    queues: [new BullMQAdapter(openQueueReader(redis, warn), { readOnlyMode: true, allowRetries: false })],
    serverAdapter,
    options: {
      handlerHooks: { before: limitPage },
      uiConfig: {
        boardTitle: "Serpmill",
        hideDocsLink: true,
        // Lists all connections of Redis, which the users of deploy/redis may not.
        showWorkers: false,
        pollingInterval: { showSetting: false, forceInterval: pollIntervalSeconds },
      },
    },
  });
  // The adapter does not say the type: it is an application of Express.
  const pages = serverAdapter.getRouter() as Express;
  pages.disable("x-powered-by");
  const app = express();
  app.disable("x-powered-by");
  app.use(path, pages);
  app.use((_request: Request, response: Response) => void response.status(404).type("text").send("no such page\n"));
  // Express knows an error handler by its four parameters.
  app.use((_error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    response.status(400).type("text").send("not understood\n");
  });
  return app;
}

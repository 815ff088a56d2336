import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from "express";
import type { Context } from "../shared/process/context.ts";
import { CallerError } from "../shared/errors.ts";
import type { Billing } from "./billing/billing.ts";
import { wantsErrorPage } from "./billing/frame/send-error-page.ts";
import { handleLlmsText } from "./docs/llms-text.ts";
import { handleOpenApiDocument } from "./docs/openapi-document.ts";
import { referencePaths, serveReference } from "./docs/reference-page.ts";
import { CallerDisconnected, recordError, toCallerError } from "./errors.ts";
import { rejectUnsafeHeaders } from "./http/request-headers.ts";
import { openRequestScope, type RequestScope, requestScopeOf } from "./http/request-scope.ts";
import { sendError } from "./http/send-error.ts";
import { serveFile } from "./http/static-file.ts";
import { pageFileHeaders } from "./pages/page-sender.ts";
import { openLanding } from "./landing/landing.ts";
import type { McpParts } from "./mcp/endpoint.ts";
import { rejectOAuth } from "./mcp/read-message.ts";
import type { RefusedSearches } from "./search/refused-searches.ts";
import { handleSearch, type SearchHandlerParts } from "./v1/search.ts";
import { handleUsage, type UsageHandlerParts } from "./read-usage.ts";

type Handler = (request: Request, response: Response) => Promise<void> | void;

export interface AppParts extends SearchHandlerParts, UsageHandlerParts, McpParts, Pick<Context, "tracing"> {
  /** Undefined if the operator has set up no payments. */
  stripeWebhook: Handler | undefined;
  billing: Billing;
  /** Undefined if the operator has opened none. */
  doors: RequestHandler | undefined;
  /** Undefined unless searches are logged. */
  refusedSearches: RefusedSearches | undefined;
  /** Aborted when the process shuts down. */
  draining: AbortSignal;
}

/** The API's table of contents: each path with its method and handler. `billing.ts` has those of the account. All else is 404 or 405. */
export function createApp(parts: AppParts): Express {
  const { config, log, metrics, draining, tracing, refusedSearches, stripeWebhook, billing, doors } = parts;
  const app = express();
  app.disable("x-powered-by").disable("etag").enable("case sensitive routing").enable("strict routing");
  app.set("query parser", "simple").set("trust proxy", config.TRUSTED_PROXIES);

  const ended = (scope: RequestScope) => refusedSearches?.add(scope);
  const scopeParts = { log, metrics, draining, tracing, publicUrl: config.PUBLIC_URL, ended };
  app.use((request, response, next) => {
    openRequestScope(scopeParts, request, response);
    rejectUnsafeHeaders(request);
    next();
  });

  if (doors) app.use(doors);
  route(app, "POST", "/v1/serp/search", handleSearch(parts));
  route(app, "GET", "/v1/usage", handleUsage(parts));
  // The protocol's SDK takes 10 MB, and many installations have no agents.
  route(
    app,
    "POST",
    "/mcp",
    loadedOnFirstUse(async () => (await import("./mcp/endpoint.ts")).handleMcp(parts)),
  );
  route(app, "POST", "/register", rejectOAuth);
  if (stripeWebhook) route(app, "POST", "/stripe/webhook", stripeWebhook);

  const landing = openLanding();
  route(app, "GET", "/", landing.page);
  for (const file of landing.files) route(app, "GET", file.path, serveFile(file, pageFileHeaders));
  route(app, "GET", "/openapi.json", handleOpenApiDocument());
  route(app, "GET", "/llms.txt", handleLlmsText(config));
  const reference = serveReference();
  for (const path of referencePaths) route(app, "GET", path, reference);

  for (const { method, path, handle, page } of billing.routes) route(app, method, path, handle, page);
  for (const file of billing.files) route(app, "GET", file.path, serveFile(file, pageFileHeaders));

  app.use(() => {
    throw new CallerError("not_found");
  });
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (error instanceof CallerDisconnected || response.closed) return;
    // Express throws URIError for a path with invalid percent encoding.
    const callerError =
      error instanceof URIError
        ? new CallerError("not_found")
        : toCallerError(log, requestScopeOf(response).requestId, error);
    // The status line has been sent, so only a broken connection can report the error.
    if (response.headersSent) return void response.destroy();
    const hasOwnForm = requestScopeOf(response).errorForm !== undefined;
    if (!hasOwnForm && wantsErrorPage(request, callerError)) return billing.sendError(request, response, callerError);
    recordError(response, callerError);
    sendError(request, response, callerError);
  });
  return app;
}

/**
 * Routes one path with its one method. OPTIONS returns the method; any other method, HEAD included, is 405.
 * @param page where a GET of a form's path is redirected, as when a browser goes back to it.
 */
function route(app: Express, method: "GET" | "POST", path: string, handle: Handler, page?: string): void {
  app.all(path, async (request, response) => {
    requestScopeOf(response).route = path;
    if (request.method === method) return handle(request, response);
    if (page !== undefined && request.method === "GET") return void response.writeHead(303, { Location: page }).end();
    response.setHeader("Allow", `${page === undefined ? "" : "GET, "}${method}, OPTIONS`);
    if (request.method !== "OPTIONS") throw new CallerError("method_not_allowed");
    response.writeHead(204).end();
  });
}

/** A handler whose code is loaded by its first request. If that fails, as with too many open files, the next request tries again. */
function loadedOnFirstUse(load: () => Promise<Handler>): Handler {
  let loaded: Promise<Handler> | undefined;
  return async (request, response) => {
    loaded ??= load();
    const handle = await loaded.catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    await handle(request, response);
  };
}

import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { CallerError } from "../shared/errors.ts";
import { openAdmission } from "./search/admission.ts";
import { assetHeaders } from "./billing/assets.ts";
import { openBilling } from "./billing/billing.ts";
import { isBillingPath } from "./billing/send-error-page.ts";
import type { ApiContext } from "./context.ts";
import { CallerDisconnected, recordError, toCallerError } from "./errors.ts";
import { handleOpenApiDocument } from "./docs/handle-openapi-document.ts";
import { docsHeaders, readPage } from "./docs/reference-page.ts";
import { requestScopeOf, openRequestScope } from "./http/request-scope.ts";
import { rejectUnsafeHeaders } from "./http/reject-unsafe-headers.ts";
import { handleSearch } from "./v1/search.ts";
import { sendError } from "./http/send-error.ts";
import { serveFile } from "./http/static-file.ts";
import { handleUsage } from "./v1/usage.ts";
import { handleMcp } from "./mcp/endpoint.ts";
import { handleStripeWebhook } from "./topups/stripe-webhook.ts";

type Answer = (request: Request, response: Response) => Promise<void> | void;

/** The API's table of contents: every path, its method, and what answers it. Everything else is 404 or 405. */
export function createApp(context: ApiContext): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag").enable("case sensitive routing").enable("strict routing");
  app.set("query parser", "simple").set("trust proxy", context.config.TRUSTED_PROXIES);

  app.use((request, response, next) => {
    openRequestScope(context, response);
    rejectUnsafeHeaders(request);
    next();
  });

  const gate = openAdmission(context);
  route(app, "POST", "/v1/serp/search", handleSearch(context, gate));
  route(app, "GET", "/v1/usage", handleUsage(context));
  route(app, "POST", "/mcp", handleMcp(context, gate));
  if (context.topups) route(app, "POST", "/stripe/webhook", handleStripeWebhook(context, context.topups));

  route(app, "GET", "/openapi.json", handleOpenApiDocument());
  for (const file of readPage()) route(app, "GET", file.path, serveFile(file, docsHeaders));

  const billing = openBilling(context);
  route(app, "GET", "/billing", billing.page);
  route(app, "POST", "/billing/sign-in", billing.signIn);
  route(app, "POST", "/billing/sign-out", billing.signOut);
  route(app, "POST", "/billing/topup", billing.topUp);
  route(app, "GET", "/billing/searches.csv", billing.exportCsv);
  route(app, "GET", "/billing/live", billing.liveUpdates);
  for (const file of Object.values(billing.assets)) route(app, "GET", file.path, serveFile(file, assetHeaders));

  app.use(() => {
    throw new CallerError("not_found");
  });
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (error instanceof CallerDisconnected || response.closed) return;
    const { requestId } = requestScopeOf(response);
    const callerError = isMalformedPath(error)
      ? new CallerError("not_found")
      : toCallerError(context.log, requestId, error);
    // The status line is out, so only a broken connection can report the error.
    if (response.headersSent) return void response.destroy();
    if (isBillingPath(request.path)) return billing.sendError(request, response, callerError);
    recordError(response, callerError);
    sendError(request, response, callerError);
  });
  return app;
}

/** One path with its one method. OPTIONS tells it; any other method, HEAD too, is 405. */
function route(app: Express, method: "GET" | "POST", path: string, answer: Answer): void {
  app.all(path, async (request, response) => {
    requestScopeOf(response).route = path;
    if (request.method === method) return answer(request, response);
    response.setHeader("Allow", `${method}, OPTIONS`);
    if (request.method !== "OPTIONS") throw new CallerError("method_not_allowed");
    response.writeHead(204).end();
  });
}

// Express throws this for a path whose percent signs decode to nothing.
function isMalformedPath(error: unknown): boolean {
  return error instanceof URIError;
}

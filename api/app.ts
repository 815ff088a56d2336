import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { CallerError } from "../shared/errors.ts";
import { openGate } from "./admission.ts";
import { assetHeaders } from "./billing/assets.ts";
import { openBilling } from "./billing/billing.ts";
import { answerDownload } from "./billing/download.ts";
import { answerLive } from "./billing/live.ts";
import { isBillingPath, sendErrorPage } from "./billing/send-error.ts";
import { answerPage } from "./billing/show.ts";
import { answerSignIn, answerSignOut } from "./billing/sign-in.ts";
import { answerTopUp } from "./billing/top-up.ts";
import type { ApiContext } from "./context.ts";
import { answerDocument } from "./docs/answer-document.ts";
import { docsHeaders, readPage } from "./docs/page.ts";
import { exchangeOf, openExchange } from "./http/exchange.ts";
import { refuseUnsafeHead } from "./http/head.ts";
import { answerSearch } from "./http/search.ts";
import { callerErrorOf, sendError } from "./http/send-error.ts";
import { answerFile } from "./http/static-file.ts";
import { answerUsage } from "./http/usage.ts";
import { answerMcp } from "./mcp/endpoint.ts";
import { CallerGone } from "./search-call.ts";
import { answerStripe } from "./topups/webhook.ts";

type Answer = (request: Request, response: Response) => Promise<void> | void;

/** The API's table of contents: every path, its method, and what answers it. Everything else is 404 or 405. */
export function createApp(context: ApiContext): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag").enable("case sensitive routing").enable("strict routing");
  app.set("query parser", "simple").set("trust proxy", context.config.TRUSTED_PROXIES);

  app.use((request, response, next) => {
    openExchange(context, response);
    refuseUnsafeHead(request);
    next();
  });

  const gate = openGate(context);
  route(app, "POST", "/v1/serp/search", answerSearch(context, gate));
  route(app, "GET", "/v1/usage", answerUsage(context));
  route(app, "POST", "/mcp", answerMcp(context, gate));
  if (context.topups) route(app, "POST", "/stripe/webhook", answerStripe(context, context.topups));

  route(app, "GET", "/openapi.json", answerDocument());
  for (const file of readPage()) route(app, "GET", file.path, answerFile(file, docsHeaders));

  const billing = openBilling(context);
  route(app, "GET", "/billing", answerPage(billing));
  route(app, "POST", "/billing/sign-in", answerSignIn(billing));
  route(app, "POST", "/billing/sign-out", answerSignOut(billing));
  route(app, "POST", "/billing/topup", answerTopUp(billing));
  route(app, "GET", "/billing/searches.csv", answerDownload(billing));
  route(app, "GET", "/billing/live", answerLive(billing));
  for (const file of Object.values(billing.assets)) route(app, "GET", file.path, answerFile(file, assetHeaders));

  app.use(() => {
    throw new CallerError("not_found");
  });
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (error instanceof CallerGone || response.closed) return;
    const defect = (cause: unknown) =>
      context.log.error({ err: cause, requestId: exchangeOf(response).requestId }, "a request failed by a defect");
    const told = isMalformedPath(error) ? new CallerError("not_found") : callerErrorOf(error, defect);
    // Half an answer cannot be taken back; the broken connection tells the caller.
    if (response.headersSent) response.destroy();
    else if (isBillingPath(request.path)) sendErrorPage(billing, request, response, told);
    else sendError(request, response, told);
  });
  return app;
}

/** One path with its one method. OPTIONS tells it; any other method, HEAD too, is 405. */
function route(app: Express, method: "GET" | "POST", path: string, answer: Answer): void {
  app.all(path, async (request, response) => {
    exchangeOf(response).route = path;
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

import type { ServerResponse } from "node:http";
import type { Request } from "express";
import type { Context } from "../../shared/process/context.ts";
import { type CallerError, errors } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import type { SearchTrace } from "../../shared/queue/replies.ts";
import type { RequestSpans, Tracing } from "../../shared/tracing/spans.ts";
import { isHttps, setSecurityHeaders } from "./security-headers.ts";

// With the 1.5 s for which a caller is cached these are the 2 s within which every API applies a change.
const lateBodyMs = 500;

/** What the one log line of a request carries besides request id, route, status and duration. */
export interface LogFields extends Partial<SearchTrace> {
  organizationId?: string;
  /** The id of the token, never the token. */
  tokenId?: string;
  /** How the request ended: an error code, or for example `answered` or `replayed`. */
  outcome?: string;
  /** An error's `details.reason`. */
  reason?: string;
  chargedMils?: number;
  /** The request whose answer a replay repeats. */
  answerOf?: string;
  /** The method of an MCP message, and the tool that it calls. */
  method?: string;
  tool?: string;
  /** Id and type of a Stripe event. */
  event?: string;
  eventType?: string;
  /** Why the signature of a Stripe event was refused. */
  signature?: "missing" | "no_match" | "too_old";
}

/** An error as the clients of another API expect it. */
export type ErrorForm = (error: CallerError, requestId: string) => { status: number; body: unknown };

/** One request and its response, from the request's head to the end of the response. */
export class RequestScope {
  readonly requestId = newId("req");
  readonly receivedAtMs = performance.now();
  #bodyMs = 0;
  /** The route's path as declared in the code, never the path that the caller sent: it is a metric's label. */
  route = "none";
  readonly logFields: LogFields = {};
  /** The fields of the search that the request asks for, as they were sent; undefined for requests of other kinds. */
  search: unknown;
  /** The error that the caller got, if any. */
  error: CallerError | undefined;
  /** How this request's error is written, where it is not {@link sendError}'s own form. */
  errorForm: ErrorForm | undefined;
  /** The caller's address, as far as the proxies in front are trusted. */
  readonly address: string | undefined;
  /** Aborted once this process shuts down. From then on every response closes its connection. */
  readonly draining: AbortSignal;
  readonly #tracing: Tracing;
  readonly #request: Request;
  readonly #publicUrl: string | undefined;
  /** Undefined unless the request is a search that is traced. */
  spans: RequestSpans | undefined;

  constructor(request: Request, { draining, tracing, publicUrl }: ScopeParts) {
    this.address = request.ip;
    this.draining = draining;
    this.#tracing = tracing;
    this.#request = request;
    this.#publicUrl = publicUrl;
  }

  /**
   * The origin by which the caller reaches this service: PUBLIC_URL, or else what the request says. `Host` is what the caller
   * sent, so use the origin only for this caller.
   */
  get origin(): string {
    const { secure, headers } = this.#request;
    return this.#publicUrl ?? `${secure ? "https" : "http"}://${headers.host ?? "localhost"}`;
  }

  /** Begins the spans of the request, a search that can be run. */
  beginSpans(): RequestSpans | undefined {
    const traceparent = this.#request.get("traceparent");
    this.spans ??= this.#tracing.begin({ traceparent, startedAtMs: this.receivedAtMs });
    return this.spans;
  }

  /**
   * Finds the caller, then reads the body. The caller decides how long that takes, so a search's deadline does not run meanwhile: a
   * body that is held back must not leave the providers less time than they need. Behind a late one the caller is found anew: it
   * may be revoked, suspended or limited by then.
   */
  async receive<Found, Body>(find: () => Promise<Found>, read: () => Promise<Body>): Promise<[Found, Body]> {
    const known = await find();
    const startedAtMs = performance.now();
    const body = await read().finally(() => {
      this.#bodyMs = performance.now() - startedAtMs;
    });
    return [this.#bodyMs > lateBodyMs ? await find() : known, body];
  }

  /** When the search's deadline starts (`performance.now()`): at the arrival of the request, plus the wait for its body. */
  get deadlineStartsAtMs(): number {
    return this.receivedAtMs + this.#bodyMs;
  }
}

interface ScopeParts extends Pick<Context, "log" | "metrics" | "tracing"> {
  draining: AbortSignal;
  publicUrl: string | undefined;
  /** Gets the scope of each request once its response has closed. */
  ended?: (scope: RequestScope) => void;
}

/** Where a response has its scope. With a WeakMap the collections of young objects take three times as long. */
const scopeOf = Symbol("request scope");
type ScopedResponse = ServerResponse & { [scopeOf]?: RequestScope };

/** The scope of a response. @throws if {@link openRequestScope} was not called for it. */
export function requestScopeOf(response: ScopedResponse): RequestScope {
  const scope = response[scopeOf];
  if (!scope) throw new Error("the response has no request scope");
  return scope;
}

/** Opens a request's scope: sets the headers of every answer, and records one metric and one log line when the response closes. */
export function openRequestScope(parts: ScopeParts, request: Request, response: ScopedResponse): RequestScope {
  const { log, metrics, publicUrl, ended } = parts;
  const scope = new RequestScope(request, parts);
  response[scopeOf] = scope;
  response.setHeader("X-Request-Id", scope.requestId);
  response.setHeader("Cache-Control", "no-store");
  setSecurityHeaders(response, isHttps(request, publicUrl));
  response.once("close", () => {
    const ms = performance.now() - scope.receivedAtMs;
    const { route, requestId, address, logFields } = scope;
    // 499: the caller disconnected before any response. The status exists only in our log and metrics.
    const status = response.headersSent ? response.statusCode : 499;
    // A search that goes on without its client has not failed: no objective may count it as one that ran out of time.
    const counted = scope.error?.details.reason === "still_running" ? 499 : status;
    scope.spans?.end({ method: request.method, route, status, requestId, outcome: logFields.outcome });
    metrics.httpSeconds.observe({ route, status: counted }, ms / 1_000);
    // A tool's error has the status 200, and is as severe as the same one over HTTP.
    const severity = counted !== 499 && scope.error ? errors[scope.error.code].status : counted;
    const level = severity >= 500 ? "warn" : "info";
    log[level]({ requestId, route, status, ms: Math.round(ms * 10) / 10, address, ...logFields }, "request");
    ended?.(scope);
  });
  return scope;
}

/** A controller that aborts if the response closes before all of it was written: the caller has disconnected. */
export function abortOnDisconnect(response: ServerResponse): AbortController {
  const disconnect = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) disconnect.abort();
  });
  return disconnect;
}

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createMcpHandler, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { Request as HttpRequest, Response as HttpResponse } from "express";
import { z } from "zod";
import { CallerError } from "../../shared/errors.ts";
import type { Admit } from "../search/admission.ts";
import type { ApiContext } from "../context.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import { readJson } from "../http/read-json.ts";
import { sendJson } from "../http/send-json.ts";
import { recordError } from "../errors.ts";
import { Cancellation } from "./cancellation.ts";
import { openHostCheck } from "./host-check.ts";
import { createToolServer } from "./tool-server.ts";
import { McpRequest } from "./mcp-request.ts";

/**
 * POST /mcp: the Model Context Protocol over HTTP, without sessions. Each request stands for itself, is identified before
 * anything is read of it, and is served by a server of its own; the SDK tells the protocol's revisions apart.
 */
export function handleMcp(context: ApiContext, passGate: Admit) {
  const foreign = openHostCheck(context.config);
  const cancellation = new Cancellation();
  const handler = createMcpHandler(({ authInfo }) => createToolServer(context, passGate, visitIn(authInfo?.extra)), {
    onerror: (error) => context.log.debug({ err: error }, "an MCP message was refused"),
  });

  return async (request: HttpRequest, response: HttpResponse) => {
    const exchange = requestScopeOf(response);
    const reason = foreign(request);
    if (reason) return refuse(request, response, { status: 403, reason, ...foreignTold });
    const caller = await context.authenticate(request);
    exchange.logFields.organizationId = caller.organizationId;
    const message = await readMessage(request, response);
    // Who is gone by now is heard of no more: nothing would end what is begun for them.
    if (message === undefined || response.closed) return;

    exchange.logFields.method = methodOf(message);
    if (exchange.logFields.method === "subscriptions/listen") return refuseListening(request, response, message);
    const visit = new McpRequest({ request, response, exchange, caller });
    cancellation.see(visit, message);
    // The token stays here: nothing behind this line needs it.
    const authInfo = { token: "", clientId: caller.organizationId, scopes: [], extra: { visit } };
    const answer = await handler.fetch(webRequest(request, visit.gone), { authInfo, parsedBody: message });
    await write(answer, request, response);
  };
}

function visitIn(extra: Record<string, unknown> | undefined): McpRequest {
  if (extra?.visit instanceof McpRequest) return extra.visit;
  throw new Error("a message without its visit");
}

interface Refused {
  status: number;
  code: number;
  message: string;
  reason: string;
}

// A code that the protocol leaves to servers.
const refusedCode = -32_000;
const foreignTold = {
  code: refusedCode,
  message: "This server does not go by that name; its operator can add it to PUBLIC_URL or MCP_ALLOWED_HOSTS.",
};

const unread: Record<string, number> = {
  json_not_accepted: 406,
  body_too_large: 413,
  content_type_not_json: 415,
  charset_not_utf8: 415,
  content_encoding_unsupported: 415,
};

/** The body as JSON, within REST's bounds; undefined where it was refused already. */
async function readMessage(request: HttpRequest, response: HttpResponse): Promise<unknown> {
  try {
    const message = await readJson(request);
    if (!Array.isArray(message)) return message;
    refuse(request, response, batch);
  } catch (error) {
    if (!(error instanceof CallerError)) throw error;
    const reason = String(error.details.reason);
    const status = unread[reason] ?? 400;
    const code = status === 400 ? ProtocolErrorCode.ParseError : refusedCode;
    refuse(request, response, { status, code, message: "The body cannot be read; data tells why.", reason });
  }
  return undefined;
}

const batch = {
  status: 400,
  code: ProtocolErrorCode.InvalidRequest,
  message: "Batches are not supported: send each message by itself.",
  reason: "batch_not_supported",
};

/** Answers a request whose message cannot be told from another, as the protocol has it: an error without an id. */
function refuse(request: HttpRequest, response: HttpResponse, { status, code, message, reason }: Refused): void {
  const { requestId } = requestScopeOf(response);
  recordError(response, new CallerError("bad_request", { reason }));
  const error = { code, message, data: { requestId, reason } };
  sendJson(request, response, status, JSON.stringify({ jsonrpc: "2.0", id: null, error }));
}

const listening = z.object({ id: z.union([z.string(), z.number()]) });

/** Nothing here ever changes, so nobody needs to wait for it on a stream that stays open. The SDK would open one. */
function refuseListening(request: HttpRequest, response: HttpResponse, message: unknown): void {
  const { data } = listening.safeParse(message);
  const error = { code: ProtocolErrorCode.MethodNotFound, message: "Method not found" };
  sendJson(request, response, 404, JSON.stringify({ jsonrpc: "2.0", id: data?.id ?? null, error }));
}

const named = z.object({ method: z.string().regex(/^[a-z]{1,20}(\/[a-z_]{1,20}){0,2}$/i) });

/** For the log: a method's name, but never what a caller wrote in its place. */
function methodOf(message: unknown): string {
  return named.safeParse(message).data?.method ?? "other";
}

/** What the SDK has to know of a request: the protocol's headers, and when its caller is gone. */
function webRequest(request: HttpRequest, signal: AbortSignal): Request {
  const known = Object.entries(request.headersDistinct).filter(([name]) => /^(mcp-|accept$|content-type$)/.test(name));
  const headers = known.map(([name, values]): [string, string] => [name, values?.join(", ") ?? ""]);
  return new Request("http://localhost/mcp", { method: "POST", headers, signal });
}

async function write(answer: Response, request: HttpRequest, response: HttpResponse): Promise<void> {
  if (response.closed) return;
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    const body = Buffer.from(await answer.arrayBuffer());
    if (body.length > 0) return sendJson(request, response, answer.status, body);
    return void response.writeHead(answer.status).end();
  }
  if (requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  response.statusCode = answer.status;
  response.setHeader("Content-Type", "text/event-stream");
  // Proxies pass on what comes when it comes.
  response.setHeader("X-Accel-Buffering", "no");
  if (!answer.body) return void response.end();
  // Whoever hung up in the middle is told nothing; what that means for its mils is decided at the response's end.
  await pipeline(Readable.fromWeb(answer.body), response).catch(() => undefined);
}

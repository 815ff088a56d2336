import {
  createMcpHandler,
  isLegacyRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Request as HttpRequest, Response as HttpResponse } from "express";
import { z } from "zod";
import { requestScopeOf } from "../http/request-scope.ts";
import type { Identify } from "../identify.ts";
import {
  jsonRpcForm,
  methodOf,
  openHostCheck,
  readMessage,
  rejectForeignHost,
  rejectListening,
} from "./read-message.ts";
import { Cancellation, McpRequest } from "./mcp-request.ts";
import { createToolServer, type ToolParts } from "./tool-server.ts";
import { writeAnswer } from "./write-answer.ts";

/** The headers that the SDK reads. */
const protocolHeaders = ["accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"];

export interface McpParts extends ToolParts {
  identify: Identify;
}

/**
 * POST /mcp: the Model Context Protocol over HTTP, without sessions. Each request is authenticated before its body is read
 * and gets its own server object. The SDK handles the differences between the protocol's revisions.
 */
export function handleMcp(parts: McpParts) {
  const foreignReason = openHostCheck(parts.config);
  const cancellation = new Cancellation();
  const onerror = (error: Error) => parts.log.debug({ err: error }, "MCP message rejected");

  return async (request: HttpRequest, response: HttpResponse) => {
    const scope = requestScopeOf(response);
    scope.errorForm = jsonRpcForm;
    const reason = foreignReason(request);
    if (reason) return rejectForeignHost(request, response, reason);
    const identify = async () => {
      const found = await parts.identify(request, response, "any");
      parts.unsent.check(found);
      return found;
    };
    const [caller, message] = await scope.receive(identify, () => readMessage(request, response));
    // If the response is closed by now, its "close" event is over and could no longer cancel what starts here.
    if (message === undefined || response.closed) return;

    const method = methodOf(message);
    scope.logFields.method = method;
    if (method === "subscriptions/listen") return rejectListening(request, response, message);
    const mcpRequest = new McpRequest({ request, response, scope, caller });
    cancellation.observe(mcpRequest, method, message);
    const webRequest = toWebRequest(request);
    const createServer = () => createToolServer(parts, mcpRequest);
    const answer = (await isAnsweredInJson(webRequest, message))
      ? await answerInJson(createServer(), webRequest, message, mcpRequest.disconnected)
      : await createMcpHandler(createServer, { onerror }).fetch(webRequest, { parsedBody: message });
    await writeAnswer(answer, mcpRequest, parts.unsent);
  };
}

/** What the SDK needs of a request: the protocol's headers. It gets no signal, see {@link createToolServer}. */
function toWebRequest({ headers }: HttpRequest): Request {
  const known: [string, string][] = [];
  for (const name of protocolHeaders) {
    const value = headers[name];
    if (value !== undefined) known.push([name, String(value)]);
  }
  return new Request("http://localhost/mcp", { method: "POST", headers: known });
}

const progressMessage = z.object({
  params: z.object({ _meta: z.object({ progressToken: z.union([z.string(), z.number()]) }) }),
});

/**
 * Whether a message is of a revision before 2026-07-28 and gets no progress notifications. The protocol allows JSON or a stream
 * of events. The SDK's handler always answers these revisions with a stream, even if it has one event, and passes it through a
 * second one. Only progress needs a stream.
 */
async function isAnsweredInJson(request: Request, message: unknown): Promise<boolean> {
  // The current revision requires this header, so its messages are left to the SDK's handler without checking them twice.
  if (request.headers.has("mcp-method") || progressMessage.safeParse(message).success) return false;
  return isLegacyRequest(request, message);
}

/** Answers such a message. Once `cancelled` is aborted, the answer is an empty stream: a cancelled request gets no message. */
async function answerInJson(
  server: Server,
  request: Request,
  message: unknown,
  cancelled: AbortSignal,
): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  const { promise: cancellation, resolve } = Promise.withResolvers<Response>();
  const nothing = () => resolve(new Response(null, { headers: { "content-type": "text/event-stream" } }));
  cancelled.addEventListener("abort", nothing, { once: true });
  return Promise.race([transport.handleRequest(request, { parsedBody: message }), cancellation]);
}

import { createMcpHandler } from "@modelcontextprotocol/server";
import type { Request as HttpRequest, Response as HttpResponse } from "express";
import { requestScopeOf } from "../http/request-scope.ts";
import type { Identify } from "../identify.ts";
import type { UnsentAnswers } from "../search/unsent-answers.ts";
import { Cancellation } from "./cancellation.ts";
import { openHostCheck } from "./host-check.ts";
import { McpRequest } from "./mcp-request.ts";
import { answerInJson, isAnsweredInJson } from "./older-revisions.ts";
import { methodOf, readMessage } from "./read-message.ts";
import { rejectForeignHost, rejectListening } from "./rejections.ts";
import { createToolServer, type ToolParts } from "./tool-server.ts";
import { writeAnswer } from "./write-answer.ts";

/** The headers that the SDK reads. */
const protocolHeaders = ["accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"];

export interface McpParts extends ToolParts {
  identify: Identify;
  unsent: UnsentAnswers;
}

/**
 * POST /mcp: the Model Context Protocol over HTTP, without sessions. Each request is authenticated before its body is read
 * and gets its own server object. The SDK handles the differences between the protocol's revisions.
 */
export function handleMcp(parts: McpParts) {
  const foreignReason = openHostCheck(parts.config);
  const cancellation = new Cancellation();
  const handler = createMcpHandler(({ authInfo }) => createToolServer(parts, mcpRequestIn(authInfo?.extra)), {
    onerror: (error) => parts.log.debug({ err: error }, "MCP message rejected"),
  });

  return async (request: HttpRequest, response: HttpResponse) => {
    const scope = requestScopeOf(response);
    const reason = foreignReason(request);
    if (reason) return rejectForeignHost(request, response, reason);
    const caller = await parts.identify(request, response, "any");
    const message = await scope.receiveBody(readMessage(request, response));
    // If the response is closed by now, its "close" event is over and could no longer cancel what starts here.
    if (message === undefined || response.closed) return;

    const method = methodOf(message);
    scope.logFields.method = method;
    if (method === "subscriptions/listen") return rejectListening(request, response, message);
    const mcpRequest = new McpRequest({ request, response, scope, caller });
    cancellation.observe(mcpRequest, method, message);
    // The SDK wants a token here; the tools do not need it, so it stays out.
    const authInfo = { token: "", clientId: caller.organizationId, scopes: [], extra: { mcpRequest } };
    const webRequest = toWebRequest(request);
    const answer = (await isAnsweredInJson(webRequest, message))
      ? await answerInJson(createToolServer(parts, mcpRequest), webRequest, message, mcpRequest.disconnected)
      : await handler.fetch(webRequest, { authInfo, parsedBody: message });
    await writeAnswer(answer, mcpRequest, parts.unsent);
  };
}

function mcpRequestIn(extra: Record<string, unknown> | undefined): McpRequest {
  if (extra?.mcpRequest instanceof McpRequest) return extra.mcpRequest;
  throw new Error("an MCP message without its request");
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

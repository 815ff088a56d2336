import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import type { Context } from "../../shared/process/context.ts";
import { CallerError, errorBody } from "../../shared/errors.ts";
import { CallerDisconnected, recordError, toCallerError } from "../errors.ts";
import { isIdempotencyKey } from "../http/request-headers.ts";
import { setRateLimitHeaders } from "../http/send-json.ts";
import { requireScope } from "../identify.ts";
import { type ReadUsage, serializeUsage, toUsageError } from "../read-usage.ts";
import { errorHint } from "./error-hint.ts";
import type { McpRequest } from "./mcp-request.ts";
import { runSearch, type SearchParts } from "../v1/search.ts";
import { isToolName, listTools, readArguments, toolNames } from "./tools.ts";
import { readQuery } from "../../shared/query/query.ts";
import { AnswerCopies } from "./answer-copies.ts";

const toolsListTtlMs = 300_000;

const instructions =
  "Searches Google: current, local and sourced facts. Each search costs money; `usage_get` shows the balance.";

// Required by the SDK but never used here. Shared, because each instance would compile its own schemas.
const jsonSchemaValidator = new AjvJsonSchemaValidator();

export interface ToolParts extends SearchParts, Pick<Context, "metrics" | "log" | "config"> {
  readUsage: ReadUsage;
}

/** The MCP server object of one request: lists the tools and calls them, through the same modules as REST. */
export function createToolServer(parts: ToolParts, mcpRequest: McpRequest): Server {
  const { scope, caller, request, disconnected } = mcpRequest;
  const server = new Server(
    { name: "serpmill", title: "Serpmill", version: "1" },
    {
      capabilities: { tools: {} },
      instructions,
      jsonSchemaValidator,
      // Private: the list names the price of the caller's plan.
      cacheHints: { "tools/list": { ttlMs: toolsListTtlMs, cacheScope: "private" } },
    },
  );
  // The SDK would do so by the signal of the web request, but a web request follows a signal with another one of its own, which
  // takes more CPU than the rest of it.
  disconnected.addEventListener("abort", () => void server.close(), { once: true });
  const plain = request.query.names === "plain";
  server.setRequestHandler("tools/list", () => ({ tools: listTools({ plan: caller.plan, plain }) }));
  server.setRequestHandler("tools/call", async ({ params }, serverContext) => {
    const { name } = params;
    if (!isToolName(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such tool.");
    scope.logFields.tool = name;
    const tool = toolNames[name];
    const args = readArguments(params.arguments ?? {});
    const { outcome, result } = await callTool(parts, mcpRequest, tool, args, serverContext);
    parts.metrics.mcpCalls.inc({ tool, outcome });
    return result;
  });
  return server;
}

async function callTool(
  parts: ToolParts,
  mcpRequest: McpRequest,
  tool: "search" | "usage",
  args: Record<string, unknown>,
  serverContext: ServerContext,
): Promise<ToolAnswer> {
  if (tool === "search") mcpRequest.scope.search = args;
  try {
    requireScope(mcpRequest.caller, tool);
    if (tool === "usage") return await callUsage(parts, mcpRequest, args);
    return await callSearch(parts, mcpRequest, args, serverContext);
  } catch (error) {
    if (error instanceof CallerDisconnected) throw error;
    return toErrorAnswer(parts, mcpRequest, error);
  }
}

/** The usage tool: the same answer as `GET /v1/usage`. */
async function callUsage(
  { readUsage, log }: ToolParts,
  { scope, caller, response }: McpRequest,
  args: Record<string, unknown>,
): Promise<ToolAnswer> {
  const [unknownField] = Object.keys(args);
  if (unknownField !== undefined) {
    const message = "Unknown field. This tool has no arguments.";
    throw new CallerError("bad_request", { issues: [{ path: unknownField, message }] });
  }
  const usage = await readUsage(caller).catch((error: unknown) => {
    throw toUsageError(log, scope.requestId, error);
  });
  if (usage.window) setRateLimitHeaders(response, caller.plan, usage.window);
  scope.logFields.outcome = "answered";
  return { outcome: "answered", result: toToolResult(serializeUsage(caller, usage)) };
}

/** An error as a tool result: the same body as in REST, with a hint for the model. Many clients show models the body alone. */
function toErrorAnswer({ log, config }: ToolParts, { scope, response }: McpRequest, thrown: unknown): ToolAnswer {
  const { requestId } = scope;
  const error = toCallerError(log, requestId, thrown);
  recordError(response, error);
  const { details } = error;
  // A model does not know the host that a path belongs to.
  const topupUrl = new URL(config.TOPUP_URL, scope.origin).href;
  const shown = details.topupUrl === undefined ? details : { ...details, topupUrl };
  const body = errorBody(requestId, error.code, shown);
  const withHint = { ...body, error: { ...body.error, nextStep: errorHint(error, topupUrl) } };
  return { outcome: error.code, result: { ...toToolResult(JSON.stringify(withHint)), isError: true } };
}

/** A REST body as a tool result: parsed, and as text for clients that do not read structured content. */
function toToolResult(body: string): CallToolResult {
  return { content: [{ type: "text", text: body }], structuredContent: JSON.parse(body) };
}

const keyField = "serpmill/idempotencyKey";
const replayedField = "serpmill/idempotencyReplayed";

/** How a tool call ended: its result, and the outcome for the metric. */
interface ToolAnswer {
  outcome: string;
  result: CallToolResult;
}

/** The search tool: the same search as `POST /v1/serp/search`. */
async function callSearch(
  parts: SearchParts,
  mcpRequest: McpRequest,
  args: Record<string, unknown>,
  serverContext: ServerContext,
): Promise<ToolAnswer> {
  const { scope, caller, response, disconnected } = mcpRequest;
  const idempotencyKey = readKey(serverContext);
  const query = readQuery(args);
  const stopProgress = sendProgress(serverContext, parts.searchTimeoutMs);
  const asked = { caller, query, idempotencyKey, disconnected };
  const { searchRequest, answer } = await runSearch(parts, scope, asked).finally(stopProgress);

  const copies = new AnswerCopies(answer.body);
  mcpRequest.delivery = { copies, flushed: parts.delivery.begin(searchRequest, response, answer.payable) };
  // With progress notifications the headers have been sent already.
  if (!response.headersSent) {
    response.setHeader("X-Request-Id", answer.requestId);
    setRateLimitHeaders(response, caller.plan, answer.window);
  }
  if (!answer.replayed) return { outcome: "answered", result: copies.result };
  return { outcome: "replayed", result: { ...copies.result, _meta: { [replayedField]: true } } };
}

function readKey({ mcpReq }: ServerContext): string | undefined {
  const { _meta: meta } = mcpReq;
  const key = meta?.[keyField];
  if (key === undefined || (typeof key === "string" && isIdempotencyKey(key))) return key;
  const message = "Expected 1 to 255 visible ASCII characters.";
  throw new CallerError("bad_request", { issues: [{ path: `_meta.${keyField}`, message }] });
}

const intervalMs = 1_000;

/**
 * Sends a progress notification every second until the deadline, if the client asked for progress.
 * @returns a function that stops it.
 */
function sendProgress({ mcpReq }: ServerContext, timeoutMs: number): () => void {
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  const last = Math.ceil(timeoutMs / intervalMs);
  let progress = 0;
  const timer = setInterval(() => {
    progress += 1;
    const message = `Searching for ${progress} s, at most ${last} s.`;
    const params = { progressToken, progress, message };
    // A notification fails only if the client has disconnected.
    void mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    if (progress >= last) clearInterval(timer);
  }, intervalMs);
  return () => clearInterval(timer);
}

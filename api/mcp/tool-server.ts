import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import { CallerError, errorBody } from "../../shared/errors.ts";
import { readQuery } from "../../shared/query/query.ts";
import type { Admit } from "../search/admission.ts";
import type { ApiContext } from "../context.ts";
import { CallerDisconnected, recordError, toCallerError } from "../errors.ts";
import { beginDelivery } from "../search/delivery.ts";
import { isIdempotencyKey } from "../http/idempotency-key.ts";
import { setRateLimitHeaders } from "../http/rate-limit-headers.ts";
import { answerLogFields } from "../v1/search.ts";
import { runSearch, timedOut } from "../search/search.ts";
import { serializeUsage, toUsageError } from "../read-usage.ts";
import { errorHint } from "./error-hint.ts";
import { sendProgress } from "./progress.ts";
import { isToolName, listTools, toolNames } from "./tools.ts";
import type { McpRequest } from "./mcp-request.ts";

const keyField = "serpmill/idempotencyKey";
const replayedField = "serpmill/idempotencyReplayed";
const listedMs = 300_000;

const instructions =
  "Searches Google for a fixed price per answer. Money is counted in mils: 1000 mils are 1 USD. Only answers are charged; " +
  "errors and cancelled searches are not.";

// Nothing is ever validated by it here; one for all, because each would compile its own.
const jsonSchemaValidator = new AjvJsonSchemaValidator();

/** The protocol's side of one visit: the tools' list, and their calls, by the same path as REST. */
export function createToolServer(context: ApiContext, passGate: Admit, visit: McpRequest): Server {
  const server = new Server(
    { name: "serpmill", title: "Serpmill", version: "1" },
    {
      capabilities: { tools: {} },
      instructions,
      jsonSchemaValidator,
      // The list names the price of the caller's plan.
      cacheHints: { "tools/list": { ttlMs: listedMs, cacheScope: "private" } },
    },
  );
  const plain = visit.request.query.names === "plain";
  const { priceMils } = visit.caller.plan;
  server.setRequestHandler("tools/list", () => ({ tools: listTools({ priceMils, plain }) }));
  server.setRequestHandler("tools/call", async ({ params }, told) => {
    const { name } = params;
    if (!isToolName(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such tool.");
    visit.exchange.logFields.tool = name;
    const given = params.arguments ?? {};
    const call = toolNames[name] === "search" ? search : callUsage;
    const result = await call(context, visit, { given, told, passGate }).catch((error: unknown) => {
      if (error instanceof CallerDisconnected) throw error;
      return refusal(context, visit, error);
    });
    context.metrics.mcpCalls.inc({ tool: toolNames[name], outcome: String(visit.exchange.logFields.outcome) });
    return result;
  });
  return server;
}

/** One call of a tool: its arguments, and what the protocol tells around them. */
interface ToolCall {
  given: Record<string, unknown>;
  told: ServerContext;
  passGate: Admit;
}

async function search(
  context: ApiContext,
  visit: McpRequest,
  { given, told, passGate }: ToolCall,
): Promise<CallToolResult> {
  const { caller, exchange, gone, response } = visit;
  const { requestId, receivedAtMs, logFields: notes } = exchange;
  const idempotencyKey = readKey(told);
  const call = { requestId, receivedAtMs, caller, query: readQuery(given), idempotencyKey, disconnected: gone };
  const end = sendProgress(told, context.config.SEARCH_DEADLINE_MS);
  const answer = await runSearch(context, passGate, call).finally(end);

  Object.assign(notes, answerLogFields(answer));
  if (!response.headersSent) {
    response.setHeader("X-Request-Id", answer.requestId);
    setRateLimitHeaders(response, caller.plan, answer.window);
  }
  const begun = beginDelivery(context, call, response);
  if (begun === "caller_gone") throw new CallerDisconnected();
  if (begun === "too_late") throw timedOut(context);
  const result = resultOf(answer.body.toString());
  return answer.replayed ? { ...result, _meta: { [replayedField]: true } } : result;
}

function readKey({ mcpReq }: ServerContext): string | undefined {
  const { _meta: meta } = mcpReq;
  const key = meta?.[keyField];
  if (key === undefined || (typeof key === "string" && isIdempotencyKey(key))) return key;
  const message = "expected 1 to 255 visible ASCII characters";
  throw new CallerError("bad_request", { issues: [{ path: `_meta.${keyField}`, message }] });
}

async function callUsage(context: ApiContext, visit: McpRequest, { given }: ToolCall): Promise<CallToolResult> {
  const { caller, exchange, response } = visit;
  const [surplus] = Object.keys(given);
  if (surplus !== undefined) {
    const message = "There is no such field. This tool has no arguments.";
    throw new CallerError("bad_request", { issues: [{ path: surplus, message }] });
  }
  const usage = await context.readUsage(caller).catch((error: unknown) => {
    throw toUsageError(context.log, exchange.requestId, error);
  });
  if (usage.window) setRateLimitHeaders(response, caller.plan, usage.window);
  exchange.logFields.outcome = "answered";
  return resultOf(serializeUsage(caller, usage));
}

/** A refusal as REST tells it, and what to do next. */
function refusal(context: ApiContext, { exchange, response }: McpRequest, thrown: unknown): CallToolResult {
  const { requestId } = exchange;
  const error = toCallerError(context.log, requestId, thrown);
  recordError(response, error);
  const { content, ...result } = resultOf(JSON.stringify(errorBody(requestId, error.code, error.details)));
  const advice = { type: "text" as const, text: errorHint(context.config, error) };
  return { ...result, content: [...content, advice], isError: true };
}

/** A body of REST as a tool's result: parsed, and the same JSON as text for clients that read nothing else. */
function resultOf(body: string): CallToolResult {
  return { content: [{ type: "text", text: body }], structuredContent: JSON.parse(body) };
}

import type { CallToolResult, ServerContext } from "@modelcontextprotocol/server";
import { CallerError } from "../../shared/errors.ts";
import { readQuery } from "../../shared/query/query.ts";
import { isIdempotencyKey } from "../http/request-headers.ts";
import { setRateLimitHeaders } from "../http/send-json.ts";
import { answerLogFields } from "../search/search.ts";
import { newSearchRequest } from "../search/search-request.ts";
import type { SearchParts } from "../v1/search.ts";
import { AnswerCopies } from "./answer-copies.ts";
import type { McpRequest } from "./mcp-request.ts";

const keyField = "serpmill/idempotencyKey";
const replayedField = "serpmill/idempotencyReplayed";

/** How a tool call ended: its result, and the outcome for the metric. */
export interface ToolAnswer {
  outcome: string;
  result: CallToolResult;
}

/** The search tool: the same search as `POST /v1/serp/search`. */
export async function callSearch(
  { search, delivery, searchTimeoutMs: timeoutMs }: SearchParts,
  mcpRequest: McpRequest,
  args: Record<string, unknown>,
  serverContext: ServerContext,
): Promise<ToolAnswer> {
  const { scope, caller, response, disconnected } = mcpRequest;
  const { requestId, deadlineStartsAtMs, logFields } = scope;
  const idempotencyKey = readKey(serverContext);
  const query = readQuery(args);
  const spans = scope.beginSpans();
  const sent = { requestId, deadlineStartsAtMs, timeoutMs, caller, query, idempotencyKey, disconnected, spans };
  const searchRequest = newSearchRequest(sent);
  const stopProgress = sendProgress(serverContext, timeoutMs);
  const answer = await search.run(searchRequest).finally(stopProgress);

  Object.assign(logFields, answerLogFields(answer));
  const copies = new AnswerCopies(answer.body);
  mcpRequest.delivery = { copies, flushed: delivery.begin(searchRequest, response, answer.payable) };
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
export function sendProgress({ mcpReq }: ServerContext, timeoutMs: number): () => void {
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

import { CallerError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import { setRateLimitHeaders } from "../http/send-json.ts";
import { type ReadUsage, serializeUsage, toUsageError } from "../read-usage.ts";
import type { McpRequest } from "./mcp-request.ts";
import { type ToolAnswer, toToolResult } from "./tool-result.ts";

export interface UsageToolParts {
  readUsage: ReadUsage;
  log: Log;
}

/** The usage tool: the same answer as `GET /v1/usage`. */
export async function callUsage(
  { readUsage, log }: UsageToolParts,
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

import type { CallToolResult } from "@modelcontextprotocol/server";

/** How a tool call ended: its result, and the outcome for the metric. */
export interface ToolAnswer {
  outcome: string;
  result: CallToolResult;
}

/** A REST body as a tool result: parsed, and as text for clients that do not read structured content. */
export function toToolResult(body: string): CallToolResult {
  return { content: [{ type: "text", text: body }], structuredContent: JSON.parse(body) };
}

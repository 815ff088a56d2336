import { requestText } from "../../harness/clients/raw-http.ts";

export interface Credential {
  url: string;
  token: string;
}

const mcpAccept = "application/json, text/event-stream";

/** A POST with a JSON body, as text to write to a connection. */
export function post(
  { url, token }: Credential,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): string {
  const { host } = new URL(url);
  const all = { host, authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
  return requestText(`POST ${path}`, all, JSON.stringify(body));
}

export const searchBytes = (by: Credential, query: object, headers?: Record<string, string>) =>
  post(by, "/v1/serp/search", query, headers);

/**
 * A tool call in the revision of MCP in which a caller cancels with a message. @param call.session makes the call cancellable.
 */
export const toolCallBytes = (
  by: Credential,
  call: { id: number; session: string; query: object; meta?: Record<string, unknown> },
) =>
  post(
    by,
    "/mcp",
    {
      jsonrpc: "2.0",
      id: call.id,
      method: "tools/call",
      params: { name: "serp.search", arguments: call.query, ...(call.meta && { _meta: call.meta }) },
    },
    { accept: mcpAccept, "mcp-session-id": call.session },
  );

export const cancelBytes = (by: Credential, call: { id: number; session: string }) =>
  post(
    by,
    "/mcp",
    { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: call.id } },
    { accept: mcpAccept, "mcp-session-id": call.session },
  );

export const getBytes = (url: string, path: string) => requestText(`GET ${path}`, { host: new URL(url).host });

/** The largest response that needs no token. */
export const largestFile = "/docs/scalar.js";

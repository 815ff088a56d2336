import { z } from "zod";
import { newId } from "../../shared/ids.ts";
import type { McpRequest } from "./mcp-request.ts";

/**
 * Cancellation of tool calls. Since revision 2026-07-28 a client cancels by closing the connection. Before, it sends a
 * separate message with the request's id, which the client counts by itself, so two clients of one organization use the
 * same ids. Therefore `initialize` returns a session id, and clients send it with every later message. It stores nothing:
 * a cancellation that reaches another process than its request has no effect, as the protocol allows.
 */

const sessionHeader = "mcp-session-id";

const messageId = z.union([z.string(), z.number()]);
const requestMessage = z.object({ id: messageId });
const cancelMessage = z.object({ params: z.object({ requestId: messageId }) });

/** The tool calls of this process that a message can cancel. */
export class Cancellation {
  readonly #running = new Map<string, McpRequest>();

  /** Registers a tool call, or cancels the one that the message names. `message` is the parsed body, with this method. */
  observe(mcpRequest: McpRequest, method: string, message: unknown): void {
    if (method === "notifications/cancelled") {
      const { data } = cancelMessage.safeParse(message);
      if (data) this.#running.get(keyOf(mcpRequest, data.params.requestId))?.cancel();
    } else if (method === "initialize") {
      if (requestMessage.safeParse(message).success) mcpRequest.response.setHeader(sessionHeader, newId("mcp"));
    } else if (method === "tools/call" && mcpRequest.request.headers[sessionHeader] !== undefined) {
      const { data } = requestMessage.safeParse(message);
      if (data) this.#register(keyOf(mcpRequest, data.id), mcpRequest);
    }
  }

  #register(key: string, mcpRequest: McpRequest): void {
    this.#running.set(key, mcpRequest);
    mcpRequest.response.once("close", () => {
      if (this.#running.get(key) === mcpRequest) this.#running.delete(key);
    });
  }
}

const keyOf = ({ caller, request: { headers } }: McpRequest, id: string | number) =>
  JSON.stringify([caller.organizationId, headers[sessionHeader], id]);

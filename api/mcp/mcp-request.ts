import type { Request, Response } from "express";
import { z } from "zod";
import { newId } from "../../shared/ids.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { abortOnDisconnect, type RequestScope } from "../http/request-scope.ts";
import type { AnswerCopies } from "./answer-copies.ts";

/** One authenticated request to /mcp: what the tools need of the HTTP around a message. */
export class McpRequest {
  readonly request: Request;
  readonly response: Response;
  readonly scope: RequestScope;
  readonly caller: Caller;
  /** Aborted when the caller disconnects or cancels. */
  readonly disconnected: AbortSignal;
  /**
   * The answer of a search on its way to the caller; undefined while none is sent. `flushed` is to be called once a whole copy of
   * the answer was handed over.
   */
  delivery: { copies: AnswerCopies; flushed: () => void } | undefined;
  readonly #abort: AbortController;

  constructor(parts: Pick<McpRequest, "request" | "response" | "scope" | "caller">) {
    this.request = parts.request;
    this.response = parts.response;
    this.scope = parts.scope;
    this.caller = parts.caller;
    this.#abort = abortOnDisconnect(parts.response);
    this.disconnected = this.#abort.signal;
  }

  /** Without effect once the delivery of an answer has begun: bytes that were sent cannot be taken back. */
  cancel(): void {
    if (!this.delivery) this.#abort.abort();
  }
}

const sessionHeader = "mcp-session-id";

const messageId = z.union([z.string(), z.number()]);
const requestMessage = z.object({ id: messageId });
const cancelMessage = z.object({ params: z.object({ requestId: messageId }) });

/**
 * The tool calls of this process that a message can cancel. Since revision 2026-07-28 a client cancels by closing the
 * connection. Before, it sends a separate message with the request's id. Clients count these ids by themselves, so two clients
 * of one organization use the same ones. Therefore `initialize` returns a session id, and clients send it with every later
 * message. Nothing is stored: a cancellation that reaches another process than its request has no effect, as the protocol
 * allows.
 */
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

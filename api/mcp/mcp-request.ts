import type { Request, Response } from "express";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { abortOnDisconnect, type RequestScope } from "../http/request-scope.ts";
import type { AnswerCopies } from "./answer-copies.ts";

/** The answer of a search on its way to the caller. */
export interface AnswerDelivery {
  copies: AnswerCopies;
  /** To be called once a whole copy of the answer was handed over. */
  flushed: () => void;
}

/** One authenticated request to /mcp: what the tools need of the HTTP around a message. */
export class McpRequest {
  readonly request: Request;
  readonly response: Response;
  readonly scope: RequestScope;
  readonly caller: Caller;
  readonly #abort: AbortController;
  #delivery: AnswerDelivery | undefined;

  constructor(parts: { request: Request; response: Response; scope: RequestScope; caller: Caller }) {
    this.request = parts.request;
    this.response = parts.response;
    this.scope = parts.scope;
    this.caller = parts.caller;
    this.#abort = abortOnDisconnect(parts.response);
  }

  /** Aborted when the caller disconnects or cancels. */
  get disconnected(): AbortSignal {
    return this.#abort.signal;
  }

  /** Without effect once the delivery of an answer has begun: bytes that were sent cannot be taken back. */
  cancel(): void {
    if (!this.#delivery) this.#abort.abort();
  }

  beginDelivery(delivery: AnswerDelivery): void {
    this.#delivery = delivery;
  }

  /** Undefined while no answer of a search is sent. */
  get delivery(): AnswerDelivery | undefined {
    return this.#delivery;
  }
}

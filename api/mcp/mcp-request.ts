import type { Request, Response } from "express";
import type { Caller } from "../../shared/organizations/organizations.ts";
import type { RequestScope } from "../http/request-scope.ts";

/** One request to /mcp of a caller who is known: what the tools need of the HTTP around them. */
export class McpRequest {
  readonly request: Request;
  readonly response: Response;
  readonly exchange: RequestScope;
  readonly caller: Caller;
  readonly #gone = new AbortController();

  constructor(parts: { request: Request; response: Response; exchange: RequestScope; caller: Caller }) {
    this.request = parts.request;
    this.response = parts.response;
    this.exchange = parts.exchange;
    this.caller = parts.caller;
    parts.response.once("close", () => {
      if (!parts.response.writableFinished) this.cancel();
    });
  }

  /** Aborted when the caller hangs up or cancels: nobody waits for an answer any more. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  cancel(): void {
    this.#gone.abort();
  }
}

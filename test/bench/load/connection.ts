import { Client } from "undici";
import type { SentRequest } from "./requests.ts";

const answerTimeoutMs = 60_000;

export interface Received {
  status: number;
  /** Retry-After, in a refusal. */
  retryAfterMs?: number;
  body: Buffer;
}

/** A connection for one request at a time. It uses undici's lowest-level interface, which costs the least CPU. */
export class Connection {
  readonly #client: Client;

  constructor(url: string) {
    this.#client = new Client(url, {
      pipelining: 1,
      headersTimeout: answerTimeoutMs,
      bodyTimeout: answerTimeoutMs,
      keepAliveTimeout: answerTimeoutMs,
    });
  }

  /** Sends a request. @throws if the connection breaks, or without an answer within a minute. */
  send(request: SentRequest): Promise<Received> {
    return new Promise((resolve, reject) => {
      let received: Omit<Received, "body"> = { status: 0 };
      const chunks: Buffer[] = [];
      this.#client.dispatch(request, {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status, { "retry-after": seconds }) => {
          received = { status, ...(seconds !== undefined && { retryAfterMs: Number(seconds) * 1_000 }) };
        },
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd: () => resolve({ ...received, body: Buffer.concat(chunks) }),
        onResponseError: (_controller, error) => reject(error),
      });
    });
  }

  close(): Promise<void> {
    return this.#client.destroy();
  }
}

import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { listen } from "./listen.ts";

/** A request as the receiver of a webhook gets it. */
export interface Received {
  id: string;
  method: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** What a request gets in place of a 204. */
export type ReceiverFault = (response: ServerResponse) => void;

/** A real server on a free loopback port to which webhooks may lead. It accepts each request, unless it has a fault for it. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  /** Faults for the next requests, one each. */
  readonly faults: ReceiverFault[] = [];
  readonly url: string;
  readonly close: () => Promise<void>;

  private constructor(listening: { url: string; close: () => Promise<void> }) {
    this.url = `${listening.url}/hook`;
    this.close = listening.close;
  }

  static async start(): Promise<WebhookReceiver> {
    const listening = await listen((request, response) => {
      void text(request).then((body) => {
        const id = String(request.headers["webhook-id"]);
        receiver.received.push({ id, method: request.method ?? "", headers: request.headers, body });
        const fault = receiver.faults.shift();
        if (fault) fault(response);
        else response.writeHead(204).end();
      });
    });
    const receiver = new WebhookReceiver(listening);
    return receiver;
  }
}

/** The event of a request, as a receiver reads it with the library of Standard Webhooks. @throws if the signature is wrong. */
export function verified({ headers, body }: Received, secret: string): unknown {
  return new Webhook(secret).verify(body, {
    "webhook-id": String(headers["webhook-id"]),
    "webhook-timestamp": String(headers["webhook-timestamp"]),
    "webhook-signature": String(headers["webhook-signature"]),
  });
}

export const answering =
  (status: number, headers: Record<string, string> = {}): ReceiverFault =>
  (response) =>
    void response.writeHead(status, headers).end();

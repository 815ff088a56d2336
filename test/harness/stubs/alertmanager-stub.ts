import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";
import { listen } from "./listen.ts";

/** An alert as Prometheus sent it. Times by `performance.now()`. */
export interface ReceivedAlert {
  name: string;
  severity: string;
  /** When it came for the first time. */
  atMs: number;
}

const sent = z.array(z.object({ labels: z.record(z.string(), z.string()), endsAt: z.string() }));

/** A server on a free loopback port that takes alerts as Alertmanager does, and sends them to no receiver. */
export interface AlertmanagerStub {
  /** Host and port, as the configuration of Prometheus names it. */
  target: string;
  /** The alerts that fired, each name once, in the order of their arrival. */
  received: ReceivedAlert[];
  /** From now on each scrape sees one more notification that did not reach the receiver; `mend` ends it. */
  failNotifications: () => void;
  mend: () => void;
  close: () => Promise<void>;
}

export async function startAlertmanagerStub(): Promise<AlertmanagerStub> {
  let isFailing = false;
  let failures = 0;
  const received: ReceivedAlert[] = [];
  const take = (alerts: unknown) => {
    for (const { labels, endsAt } of sent.parse(alerts)) {
      const { alertname: name = "", severity = "" } = labels;
      const isFiring = Date.parse(endsAt) > Date.now();
      if (isFiring && !received.some((one) => one.name === name))
        received.push({ name, severity, atMs: performance.now() });
    }
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === "/metrics") {
      if (isFailing) failures += 1;
      const name = "alertmanager_notifications_failed_total";
      response.end(`# TYPE ${name} counter\n${name}{integration="webhook"} ${failures}\n`);
      return;
    }
    if (request.method === "POST") take(await json(request));
    response.end();
  };
  const { url, close } = await listen((request, response) => void answer(request, response));
  return {
    target: new URL(url).host,
    received,
    failNotifications: () => {
      isFailing = true;
    },
    mend: () => {
      isFailing = false;
    },
    close,
  };
}

import { Exposition } from "../assertions/metrics.ts";
import type { Answer, Service } from "../processes/service.ts";
import { signatureOf } from "../stubs/stripe-stub.ts";

/** Which API gets an event, and what is wrong with it. */
export interface EventDelivery {
  api?: number;
  signature?: string;
  body?: string;
  headers?: Record<string, string>;
}

/** Sends an event to the service, as Stripe does. */
export function sendEvent(service: Service, event: unknown, sending: EventDelivery = {}): Promise<Answer> {
  const { api = 0, signature, body, headers } = sending;
  const text = JSON.stringify(event);
  return service.send("/stripe/webhook", {
    api,
    method: "POST",
    headers: {
      "content-type": "application/json; charset=utf-8",
      "stripe-signature": signature ?? signatureOf(text),
      ...headers,
    },
    body: body ?? text,
  });
}

export const acknowledged = { status: 200, body: { received: true } };
export const unsigned = {
  status: 400,
  body: { error: { code: "bad_request", details: { reason: "signature_invalid" } } },
};
export const notCredited = {
  status: 503,
  body: { error: { code: "unavailable", details: { reason: "topup_not_credited", retryAfterMs: 60_000 } } },
};

/** How much each outcome of `topups_total` grew, over all APIs, while the action ran; and the mils credited. */
export async function countOutcomes(service: Service, action: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await sums(service);
  await action();
  const after = await sums(service);
  const grown = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, value]) => value !== 0));
}

async function sums({ apis }: Service): Promise<Map<string, number>> {
  const sum = new Map<string, number>();
  for (const exposition of await Promise.all(apis.map((api) => Exposition.of(api)))) {
    const outcomes = Object.entries(exposition.all("topups_total")).map(
      ([labels, value]) => [/outcome="(\w+)"/.exec(labels)?.[1] ?? labels, value] as const,
    );
    const mils = ["mils", exposition.value("topup_mils_total") ?? 0] as const;
    for (const [name, value] of [...outcomes, mils]) sum.set(name, (sum.get(name) ?? 0) + value);
  }
  return sum;
}

import { Exposition } from "../assertions/metrics.ts";
import type { Answer, Service } from "../processes/service.ts";
import { signatureOf } from "../stubs/stripe-stub.ts";

/** What is otherwise with an event than it should be, and which API hears of it. */
export interface EventDelivery {
  api?: number;
  signature?: string;
  body?: string;
  headers?: Record<string, string>;
}

/** An event on its way from Stripe to the service. */
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

/** How often each outcome of a top-up came over all APIs while this was done, and the mils credited. */
export async function counted(service: Service, what: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await sums(service);
  await what();
  const after = await sums(service);
  const grown = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, value]) => value !== 0));
}

async function sums({ apis }: Service): Promise<Map<string, number>> {
  const sum = new Map<string, number>();
  for (const told of await Promise.all(apis.map((api) => Exposition.of(api)))) {
    const outcomes = Object.entries(told.all("topups_total")).map(
      ([labels, value]) => [/outcome="(\w+)"/.exec(labels)?.[1] ?? labels, value] as const,
    );
    const mils = ["mils", told.value("topup_mils_total") ?? 0] as const;
    for (const [name, value] of [...outcomes, mils]) sum.set(name, (sum.get(name) ?? 0) + value);
  }
  return sum;
}

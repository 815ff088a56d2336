import type { Stripe } from "stripe";
import { z } from "zod";
import type { Config } from "../config.ts";

// A call takes no longer than both attempts and the pause of a second at most between them.
const attemptMsMax = 4_000;
const retriesMax = 1;

/**
 * A client for Stripe, or undefined where no key is set; then the SDK is not even loaded, which would take 35 MB and an
 * eighth of a second. What leaves the machine is what we ask for: no telemetry, which would also write to the home folder.
 */
export async function openStripe(config: Config): Promise<Stripe | undefined> {
  const { STRIPE_SECRET_KEY: key, STRIPE_BASE_URL: place } = config;
  if (key === undefined) return undefined;
  const { Stripe } = await import("stripe");
  const { protocol, hostname, port } = new URL(place);
  const isPlain = protocol === "http:";
  return new Stripe(key, {
    host: hostname,
    port: port || (isPlain ? "80" : "443"),
    protocol: isPlain ? "http" : "https",
    timeout: attemptMsMax,
    maxNetworkRetries: retriesMax,
    telemetry: false,
    // With this client the bound is on the whole of an attempt, to the last byte; the other one waits on while bytes drip.
    httpClient: Stripe.createFetchHttpClient((address, init) => fetch(address, { ...init, redirect: "error" })),
  });
}

const told = z.object({
  type: z.string().optional(),
  code: z.string().optional(),
  statusCode: z.number().optional(),
  requestId: z.string().optional(),
  detail: z
    .object({ code: z.string().optional(), cause: z.object({ code: z.string().optional() }).optional() })
    .optional()
    .catch(undefined),
});

/** What of a failure may be told. Stripe repeats the key in some of its sentences, so none of them is. */
export function stripeErrorFields(error: unknown) {
  const { requestId: stripeRequestId, detail, ...reasons } = told.safeParse(error).data ?? {};
  return { ...reasons, network: detail?.code ?? detail?.cause?.code, stripeRequestId };
}

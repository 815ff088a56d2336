import type { Stripe } from "stripe";
import { z } from "zod";
import type { Config } from "../../shared/config.ts";
import type { Context } from "../../shared/process/context.ts";
import { unavailable } from "../errors.ts";
import { crediting, milsPerCent, organizationOf, ownerMetadata } from "./credit-payment.ts";

// A call takes at most two attempts and the pause between them, which is a second at most.
const attemptMsMax = 4_000;
const retriesMax = 1;

/** When a caller may ask again for what Stripe did not do. */
export const stripeRetryAfterMs = 5_000;

/**
 * Opens a client for Stripe, or returns undefined without a key. Then the SDK is not even loaded: it would take 35 MB and an
 * eighth of a second. Telemetry is off: only our own requests leave the machine, and nothing is written to the home folder.
 * @param attemptTimeoutMs the time limit of one attempt.
 */
export async function openStripe(
  { STRIPE_SECRET_KEY: key, STRIPE_BASE_URL: baseUrl }: Pick<Config, "STRIPE_SECRET_KEY" | "STRIPE_BASE_URL">,
  attemptTimeoutMs = attemptMsMax,
): Promise<Stripe | undefined> {
  if (key === undefined) return undefined;
  const { Stripe } = await import("stripe");
  const { protocol, hostname, port } = new URL(baseUrl);
  const isPlain = protocol === "http:";
  return new Stripe(key, {
    host: hostname,
    port: port || (isPlain ? "80" : "443"),
    protocol: isPlain ? "http" : "https",
    timeout: attemptTimeoutMs,
    maxNetworkRetries: retriesMax,
    telemetry: false,
    // This HTTP client limits the whole attempt, to the last byte. The default one keeps waiting while bytes trickle in.
    httpClient: Stripe.createFetchHttpClient((address, init) => fetch(address, { ...init, redirect: "error" })),
  });
}

const stripeError = z.object({
  type: z.string().optional(),
  code: z.string().optional(),
  statusCode: z.number().optional(),
  requestId: z.string().optional(),
  detail: z
    .object({ code: z.string().optional(), cause: z.object({ code: z.string().optional() }).optional() })
    .optional()
    .catch(undefined),
});

/** The fields of a Stripe error that may be logged. Messages are left out: some of Stripe's repeat the secret key. */
export function stripeErrorFields(error: unknown) {
  const { requestId: stripeRequestId, detail, ...fields } = stripeError.safeParse(error).data ?? {};
  return { ...fields, network: detail?.code ?? detail?.cause?.code, stripeRequestId };
}

const begunSession = z.object({ id: z.string(), url: z.url() });

/**
 * Begins a Checkout Session. A failure of Stripe is counted and logged.
 * @param options.failure the line of the log if Stripe does not begin it.
 * @param create calls Stripe.
 * @returns its id, and the page of Stripe that the person has to visit.
 * @throws {CallerError} `unavailable` with this reason if Stripe is down, refuses, or returns a page of another origin than
 * STRIPE_CHECKOUT_ORIGIN: a browser would silently stay, because it follows a form's redirect only where our policy allows.
 */
export async function beginSession(
  { config, log, metrics }: Pick<Context, "config" | "log" | "metrics">,
  options: { organizationId: string; reason: "payments_unavailable" | "card_unavailable"; failure: string },
  create: () => Promise<unknown>,
): Promise<{ sessionId: string; url: string }> {
  const { organizationId, reason, failure } = options;
  const failed = (logFields: object, message: string) => {
    metrics.topups.inc({ outcome: "not_begun" });
    log.error({ organizationId, ...logFields }, message);
    return unavailable(reason, stripeRetryAfterMs);
  };
  const begun = create().then((session) => begunSession.parse(session));
  const { id: sessionId, url } = await begun.catch((error: unknown) => {
    const fields = stripeErrorFields(error);
    throw fields.type === undefined && !(error instanceof z.ZodError) ? error : failed(fields, failure);
  });
  const { origin } = new URL(url);
  if (origin === config.STRIPE_CHECKOUT_ORIGIN) return { sessionId, url };
  throw failed({ sessionId, origin }, "Stripe's payment page has another origin: set STRIPE_CHECKOUT_ORIGIN to it");
}

/** Longer than a Checkout Session is open, which is 24 hours. */
const openSecondsMax = 25 * 3_600;
const listedPerPage = 100;

/**
 * Expires the open Checkout Sessions of an organization: they take no payment and save no card any more.
 * @throws Stripe's error, such as if one was paid in this moment. Others may be open still.
 */
export async function expireSessions(stripe: Stripe, organizationId: string): Promise<void> {
  const since = Math.floor(Date.now() / 1_000) - openSecondsMax;
  const open: string[] = [];
  const listed = stripe.checkout.sessions.list({ status: "open", created: { gte: since }, limit: listedPerPage });
  for await (const session of listed) if (organizationOf(session) === organizationId) open.push(session.id);
  for (const sessionId of open) await stripe.checkout.sessions.expire(sessionId);
}

/**
 * Credits Stripe Checkout Sessions. The id of a session is the id of its grant, which the ledger accepts once. So a session
 * may arrive any number of times, in any order, from the webhook and from `credit topups-check`.
 */

const milsKey = "serpmill_mils";

/** The metadata of a session and of a payment. */
export function checkoutMetadata(organizationId: string, mils: number): Record<string, string> {
  return { ...ownerMetadata(organizationId), [milsKey]: String(mils) };
}

const paidSession = z.object({
  id: z.string().regex(/^cs_\w{1,250}$/),
  object: z.literal("checkout.session"),
  // The amount that was paid decides. We asked for dollars, without conversion from another currency.
  currency: z.literal("usd"),
  amount_total: z.int().min(1).max(99_999_999),
  metadata: z.object({ [milsKey]: z.string().optional() }),
});
// Stripe includes the payment only if the request asks for it. Events carry its id alone.
const refundedSession = z.object({
  payment_intent: z.object({ latest_charge: z.object({ refunded: z.literal(true) }) }),
});
const anySession = z.object({ id: z.string().optional(), payment_status: z.string().optional() });

/** Credits a Checkout Session. */
export const creditCheckoutSession = crediting((session, log) => {
  const organizationId = organizationOf(session);
  if (organizationId === undefined) return { outcome: "foreign" };
  const { id: sessionId, payment_status: status } = anySession.safeParse(session).data ?? {};
  if (status !== "paid") return { outcome: "unpaid" };
  if (refundedSession.safeParse(session).success) return { outcome: "refunded" };
  const paid = paidSession.safeParse(session);
  if (!paid.success) return { outcome: "unusable", grantId: sessionId };
  const { id, amount_total: cents, metadata } = paid.data;
  const mils = cents * milsPerCent;
  if (metadata[milsKey] !== String(mils)) {
    log.warn(
      { organizationId, sessionId: id, mils, begunMils: metadata[milsKey] },
      "the amount paid differs from the amount begun",
    );
  }
  return { organizationId, grantId: id, mils };
});

import { createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { listen } from "./listen.ts";
import { metadataIn, missing, StripeCards } from "./stripe-cards.ts";
import type { SeenCall, Session } from "./stripe-objects.ts";

export const stripeKey = "sk_test_canary51Hx9secret";
export const webhookSecret = "whsec_canary7Qsecret";

/** A fault: what a call gets instead of its answer. */
export type Fault = (response: ServerResponse) => void;

/** A real server on a free loopback port that implements Stripe's HTTP API for Checkout, and signs events as Stripe does. */
export class StripeStub {
  readonly calls: SeenCall[] = [];
  readonly sessions: Session[] = [];
  /** The origin of new sessions' payment pages. A Stripe account may have its own domain for them. */
  checkoutOrigin = "https://checkout.stripe.com";
  /** The address of the receipt of a session's charge; null if there is none. */
  receiptUrlOf: (sessionId: string) => string | null = (id) => `https://pay.stripe.com/receipts/payment/${id}?s=ap`;
  /** The ids of the sessions whose payments were refunded in full. */
  readonly refunded = new Set<string>();
  /** The secret keys that it accepts. */
  readonly keys = new Set([stripeKey]);
  /** Faults for the next calls, one each. */
  readonly faults: Fault[] = [];
  /** Faults for the next charges of saved cards. A call in the background, such as to delete a card, takes none of them. */
  readonly chargeFaults: Fault[] = [];
  /** How long a charge of a saved card takes. */
  chargeMs = 0;
  /** What a call gets while Stripe is away: nothing is done for it. */
  away: Fault | undefined;
  /** Customers, their saved cards, and the payments with them. */
  readonly cards = new StripeCards();
  readonly url: string;
  readonly close: () => Promise<void>;
  readonly #answers = new Map<string, { body: string; status: number; answer: string }>();

  private constructor(listening: { url: string; close: () => Promise<void> }) {
    this.url = listening.url;
    this.close = listening.close;
  }

  static async start(): Promise<StripeStub> {
    const listening = await listen((request, response) => void stub.#handle(request, response));
    const stub = new StripeStub(listening);
    return stub;
  }

  /** The settings of a service that uses this Stripe. */
  get environment(): Record<string, string> {
    return {
      STRIPE_SECRET_KEY: stripeKey,
      STRIPE_WEBHOOK_SECRET: webhookSecret,
      STRIPE_BASE_URL: this.url,
      PUBLIC_URL: "https://serp.example",
    };
  }

  /** A paid session, as if our API had created it. */
  paid(organizationId: string, cents: number, changes: Partial<Session> = {}): Session {
    const metadata = { serpmill_organization: organizationId, serpmill_mils: String(cents * 10) };
    const session = {
      ...newSession(this.checkoutOrigin),
      client_reference_id: organizationId,
      metadata,
      amount_total: cents,
    };
    return this.#keep({ ...session, status: "complete", payment_status: "paid", payment_intent: "pi_1", ...changes });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const url = new URL(request.url ?? "", this.url);
    const key = request.headers["idempotency-key"];
    const fields = Object.fromEntries(new URLSearchParams(request.method === "POST" ? body : url.search));
    const call = { method: request.method ?? "", path: url.pathname, fields };
    this.calls.push({ ...call, idempotencyKey: typeof key === "string" ? key : undefined });
    if (this.away) return this.away(response);
    const isCharge = call.method === "POST" && call.path === "/v1/payment_intents";
    const fault = (isCharge ? this.chargeFaults.shift() : undefined) ?? this.faults.shift();
    const known = typeof key === "string" ? this.#answers.get(key) : undefined;
    if (known && known.body !== body) return refuse(response, 400, "idempotency_error", "Keys are for equal requests.");
    const [status, answer] = known ? [known.status, known.answer] : this.#answer(request, call);
    // The first answer is repeated, a decline and an error too; not what was refused before it was begun.
    if ([200, 402, 500].includes(status) && typeof key === "string") this.#answers.set(key, { body, status, answer });
    if (isCharge && this.chargeMs > 0) await setTimeout(this.chargeMs);
    // As with the real Stripe, a lost answer does not undo the call.
    if (fault) return fault(response);
    if (known) response.setHeader("idempotent-replayed", "true");
    response.writeHead(status, { "content-type": "application/json", "request-id": "req_stripe" }).end(answer);
  }

  #answer(request: IncomingMessage, { method, path, fields }: Omit<SeenCall, "idempotencyKey">): [number, string] {
    const given = request.headers.authorization ?? "";
    if (!this.keys.has(given.replace(/^Bearer /, "")))
      return [401, errorBody("invalid_request_error", `Invalid API Key: ${given}`)];
    const asked = /^\/v1\/checkout\/sessions\/(\w+)$/.exec(path)?.[1];
    if (method === "GET" && asked !== undefined) return this.#one(asked, fields);
    const expired = /^\/v1\/checkout\/sessions\/(\w+)\/expire$/.exec(path)?.[1];
    if (method === "POST" && expired !== undefined) return this.#expire(expired);
    const ofCards = this.cards.answer({ method, path, fields });
    if (ofCards) return ofCards;
    if (path !== "/v1/checkout/sessions") return [404, errorBody("invalid_request_error", "Unrecognized request URL")];
    if (method === "GET") return [200, JSON.stringify(this.#list(fields))];
    const { customer } = fields;
    if (customer !== undefined && !this.cards.customers.has(customer)) return missing("customer", customer, 400);
    const session: Session = {
      ...newSession(this.checkoutOrigin),
      mode: fields.mode === "setup" ? "setup" : "payment",
      customer: customer ?? null,
      amount_total: Number(fields["line_items[0][price_data][unit_amount]"] ?? 0),
      client_reference_id: fields.client_reference_id ?? null,
      metadata: metadataIn(fields),
    };
    return [200, JSON.stringify(this.#keep(session))];
  }

  #one(id: string, fields: Record<string, string>): [number, string] {
    const session = this.sessions.find((known) => known.id === id);
    if (!session) return [404, errorBody("invalid_request_error", `No such checkout.session: ${id}`)];
    const isExpanded = fields["expand[0]"] === "payment_intent.latest_charge";
    return [200, JSON.stringify(isExpanded ? this.#withPayment(session) : session)];
  }

  #expire(id: string): [number, string] {
    const session = this.sessions.find((known) => known.id === id);
    if (session?.status !== "open") return [400, errorBody("invalid_request_error", "Only open sessions expire.")];
    session.status = "expired";
    return [200, JSON.stringify(session)];
  }

  /** Newest first, in pages. */
  #list(fields: Record<string, string>) {
    const since = Number(fields["created[gte]"] ?? 0);
    const asked = this.sessions
      .toReversed()
      .filter(({ created, status }) => created >= since && (fields.status ?? status) === status);
    const from = fields.starting_after ? asked.findIndex(({ id }) => id === fields.starting_after) + 1 : 0;
    const page = asked.slice(from, from + Number(fields.limit ?? 10));
    const data = fields["expand[0]"] === "data.payment_intent.latest_charge" ? page.map(this.#withPayment) : page;
    return { object: "list", url: "/v1/checkout/sessions", data, has_more: from + data.length < asked.length };
  }

  readonly #withPayment = ({ payment_intent: id, ...session }: Session) => ({
    ...session,
    payment_intent: id && {
      id,
      latest_charge: {
        id: "ch_1",
        refunded: this.refunded.has(session.id),
        receipt_url: this.receiptUrlOf(session.id),
      },
    },
  });

  #keep(session: Session): Session {
    this.sessions.push(session);
    return session;
  }
}

function newSession(checkoutOrigin: string): Session {
  const id = `cs_test_${randomBytes(12).toString("hex")}`;
  return {
    id,
    object: "checkout.session",
    url: `${checkoutOrigin}/c/pay/${id}`,
    status: "open",
    payment_status: "unpaid",
    amount_total: 0,
    currency: "usd",
    created: Math.floor(Date.now() / 1_000),
    client_reference_id: null,
    metadata: {},
    payment_intent: null,
    mode: "payment",
    customer: null,
    setup_intent: null,
  };
}

export const completed = "checkout.session.completed";

/** An event as Stripe sends it. */
export function eventOf(object: unknown, type = completed, livemode = false) {
  return { id: `evt_${randomBytes(8).toString("hex")}`, object: "event", type, livemode, data: { object } };
}

/**
 * The Stripe-Signature header of a body, by default signed now with the right secret. While a secret is replaced, Stripe signs
 * with both. The SDK has its own code for it.
 */
export function signatureOf(
  body: string,
  options: { secret?: string | readonly string[]; ageSeconds?: number } = {},
): string {
  const at = Math.floor(Date.now() / 1_000) - (options.ageSeconds ?? 0);
  const secrets = [options.secret ?? webhookSecret].flat();
  const hmacs = secrets.map((secret) => createHmac("sha256", secret).update(`${at}.${body}`).digest("hex"));
  return `t=${at},${hmacs.map((hmac) => `v1=${hmac}`).join(",")}`;
}

export const refusal =
  (status: number, type: string, message: string): Fault =>
  (response) =>
    refuse(response, status, type, message);

/** Takes the call and never answers. */
export const hang: Fault = () => {};

/** Sends its answer one byte at a time and never completes it. */
export const drip: Fault = (response) => {
  response.writeHead(200, { "content-type": "application/json" }).write("{");
  const timer = setInterval(() => response.write(" "), 100);
  response.once("close", () => clearInterval(timer));
};

/** Closes the connection without an answer. */
export const disconnect: Fault = (response) => void response.destroy();

/** Answers with a page that is not Stripe's, as a captive portal does. */
export const stranger: Fault = (response) => void response.end("<html>");

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(errorBody(type, message));
}

const errorBody = (type: string, message: string) => JSON.stringify({ error: { type, message } });

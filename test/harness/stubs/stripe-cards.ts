import { randomBytes } from "node:crypto";
import type { SeenCall, Session } from "./stripe-objects.ts";

/** A status and a body. */
export type StripeAnswer = [status: number, body: string];

/** How a bank answers when a saved card is charged, or that Stripe fails before it asks the bank. */
export type BankAnswer = { code: string; decline_code?: string } | "processing" | "paid" | "not_asked";

interface Intent {
  id: string;
  object: "payment_intent";
  amount: number;
  amount_received: number;
  currency: string;
  customer: string;
  payment_method: string | null;
  status: string;
  created: number;
  metadata: Record<string, string>;
  last_payment_error: object | null;
  latest_charge: string | null;
}

interface Card {
  id: string;
  object: "payment_method";
  type: "card";
  customer: string | null;
  created: number;
  card: { brand: string; last4: string; exp_month: number; exp_year: number };
}

const newStripeId = (prefix: string) => `${prefix}_${randomBytes(12).toString("hex")}`;
const nowSeconds = () => Math.floor(Date.now() / 1_000);

/** What Stripe's API has about customers, their saved cards, and the payments that are made with them. */
export class StripeCards {
  /** The customers that exist. */
  readonly customers = new Map<string, { name: string; metadata: Record<string, string> }>();
  readonly cards: Card[] = [];
  readonly intents: Intent[] = [];
  /** The bank's answers to the next charges; without one, a charge is paid. */
  readonly bank: BankAnswer[] = [];
  /** The ids of payments that the operator refunded in full. */
  readonly refunded = new Set<string>();
  readonly #setups = new Map<string, string>();

  /** What the form of a card leads to: it is attached to the session's customer, and the session is complete. */
  enter(session: Session, { brand = "visa", last4 = "4242" } = {}): Session {
    const customer = session.customer ?? null;
    const expiry = { exp_month: 4, exp_year: 2030 };
    const card: Card = {
      id: newStripeId("pm"),
      object: "payment_method",
      type: "card",
      customer,
      // No person enters two cards within one second.
      created: Math.max(nowSeconds(), (this.cards.at(-1)?.created ?? 0) + 1),
      card: { brand, last4, ...expiry },
    };
    this.cards.push(card);
    const setup = newStripeId("seti");
    this.#setups.set(setup, card.id);
    return Object.assign(session, { status: "complete", payment_status: "no_payment_required", setup_intent: setup });
  }

  /** The cards that are attached to a customer. */
  attachedTo(customer: string): Card[] {
    return this.cards.filter((card) => card.customer === customer);
  }

  /** The payments that moved money. */
  get paid(): Intent[] {
    return this.intents.filter(({ status }) => status === "succeeded");
  }

  /** The answer to a call; undefined if it is none of these. */
  answer({ method, path, fields }: Omit<SeenCall, "idempotencyKey">): StripeAnswer | undefined {
    const [, kind = "", id = "", verb] = /^\/v1\/(\w+)(?:\/(\w+))?(?:\/(\w+))?$/.exec(path) ?? [];
    const key = `${method} ${kind}${verb ? `/${verb}` : ""}`;
    if (key === "POST customers") return this.#createCustomer(fields);
    if (key === "DELETE customers") return this.#deleteCustomer(id);
    if (key === "GET setup_intents") return this.#setup(id);
    if (key === "POST payment_methods/detach") return this.#detach(id);
    if (key === "POST payment_intents") return this.#charge(fields);
    if (key === "GET payment_intents") return id === "" ? this.#list(fields) : this.#one(id);
    return undefined;
  }

  #createCustomer(fields: Record<string, string>): StripeAnswer {
    const id = newStripeId("cus");
    this.customers.set(id, { name: fields.name ?? "", metadata: metadataIn(fields) });
    return [200, JSON.stringify({ id, object: "customer", metadata: metadataIn(fields) })];
  }

  #deleteCustomer(id: string): StripeAnswer {
    if (!this.customers.delete(id)) return missing("customer", id);
    for (const card of this.attachedTo(id)) card.customer = null;
    return [200, JSON.stringify({ id, object: "customer", deleted: true })];
  }

  #setup(id: string): StripeAnswer {
    const card = this.cards.find((known) => known.id === this.#setups.get(id));
    if (!card) return missing("setupintent", id);
    return [200, JSON.stringify({ id, object: "setup_intent", status: "succeeded", payment_method: card })];
  }

  #detach(id: string): StripeAnswer {
    const card = this.cards.find((known) => known.id === id);
    if (!card?.customer) return invalid("payment_method_unexpected_state", "The payment method is not attached.");
    card.customer = null;
    return [200, JSON.stringify(card)];
  }

  #charge(fields: Record<string, string>): StripeAnswer {
    // As the API does since its version 2026-09-30.
    if ("payment_method_types[0]" in fields) return invalid("payment_method_types_no_longer_supported", "Removed.");
    const { customer = "", payment_method: method = "" } = fields;
    if (!this.customers.has(customer)) return missing("customer", customer, 400);
    if (!this.attachedTo(customer).some(({ id }) => id === method)) return missing("PaymentMethod", method, 400);
    const bank = this.bank.shift() ?? "paid";
    if (bank === "not_asked") return [500, JSON.stringify({ error: { type: "api_error", message: "An error." } })];
    const intent = newIntent({ amount: Number(fields.amount), customer, metadata: metadataIn(fields) });
    this.intents.push(intent);
    if (bank === "paid") return [200, JSON.stringify(this.settle(intent))];
    if (bank === "processing") return [200, JSON.stringify(Object.assign(intent, { status: "processing" }))];
    const error = { type: "card_error", message: "Your card was declined.", ...bank };
    intent.last_payment_error = error;
    return [402, JSON.stringify({ error: { ...error, payment_intent: intent } })];
  }

  /** A payment that was made, as if our API had asked for it. */
  keepPaid(amount: number, metadata: Record<string, string>): Intent {
    const intent = this.settle(newIntent({ amount, customer: "cus_1", metadata }));
    this.intents.push(intent);
    return intent;
  }

  /** The bank pays. */
  settle(intent: Intent): Intent {
    return Object.assign(intent, { status: "succeeded", amount_received: intent.amount });
  }

  #list(fields: Record<string, string>): StripeAnswer {
    const since = Number(fields["created[gte]"] ?? 0);
    const { customer } = fields;
    const asked = this.intents
      .toReversed()
      .filter((intent) => intent.created >= since && (customer ?? intent.customer) === intent.customer);
    const from = fields.starting_after ? asked.findIndex(({ id }) => id === fields.starting_after) + 1 : 0;
    const page = asked.slice(from, from + Number(fields.limit ?? 10));
    const data = fields["expand[0]"] === "data.latest_charge" ? page.map(this.#withCharge) : page;
    const list = { object: "list", url: "/v1/payment_intents", data, has_more: from + data.length < asked.length };
    return [200, JSON.stringify(list)];
  }

  #one(id: string): StripeAnswer {
    const intent = this.intents.find((known) => known.id === id);
    return intent ? [200, JSON.stringify(this.#withCharge(intent))] : missing("payment_intent", id);
  }

  readonly #withCharge = (intent: Intent) => ({
    ...intent,
    latest_charge: {
      id: intent.latest_charge,
      refunded: this.refunded.has(intent.id),
      receipt_url: `https://pay.stripe.com/receipts/payment/${intent.id}?s=ap`,
    },
  });
}

function newIntent(made: Pick<Intent, "amount" | "customer" | "metadata">): Intent {
  return {
    ...made,
    id: newStripeId("pi"),
    object: "payment_intent",
    amount_received: 0,
    currency: "usd",
    payment_method: null,
    status: "requires_payment_method",
    created: nowSeconds(),
    last_payment_error: null,
    latest_charge: newStripeId("ch"),
  };
}

/** The fields `metadata[…]` of a form. */
export function metadataIn(fields: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      const inner = /^metadata\[(\w+)\]$/.exec(name)?.[1];
      return inner === undefined ? [] : [[inner, value]];
    }),
  );
}

const invalid = (code: string, message: string, status = 400): StripeAnswer => [
  status,
  JSON.stringify({ error: { type: "invalid_request_error", code, message } }),
];

export const missing = (kind: string, id: string, status = 404) =>
  invalid("resource_missing", `No such ${kind}: '${id}'`, status);

/** The fields of a Checkout Session that the service reads. */
export interface Session {
  id: string;
  object: "checkout.session";
  url: string;
  status: "open" | "complete" | "expired";
  payment_status: string;
  amount_total: number;
  currency: string;
  created: number;
  client_reference_id: string | null;
  metadata: Record<string, string>;
  payment_intent: string | null;
  mode: "payment" | "setup";
  customer: string | null;
  setup_intent: string | null;
}

export interface SeenCall {
  method: string;
  path: string;
  idempotencyKey: string | undefined;
  /** The form's fields by their names, such as `line_items[0][quantity]`. */
  fields: Record<string, string>;
}

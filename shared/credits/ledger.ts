import { z } from "zod";
import { sqlStateOf } from "../database/failures.ts";
import type { Database } from "../database/pool.ts";
import { protocolTimes } from "../protocol-times.ts";
import type { IdempotencyKey } from "./idempotency-key.ts";
import type { VersionedBalance } from "./versioned-balance.ts";

/**
 * The truth about money. Every search whose end reached Postgres has one deciding entry, a charge or a refund; whoever
 * inserts it first has decided, and everybody else obeys. All writing goes through the functions of the database
 * (`settle`, `reverse_charges`, `grant_credit`, and `topup` around it), which lock the organization's row first.
 */

/** Why nothing was charged. The first five are found while settling; the rest are what the search met. */
export const refundReasons = [
  "out_of_credits",
  "already_paid",
  "idempotency_key_reused",
  "engine_error",
  "engine_timeout",
  "query_rejected",
  "deadline_passed",
  "caller_gone",
  "not_enqueued",
  "admission_unknown",
  "worker_failed",
  "abandoned",
] as const;
export type RefundReason = (typeof refundReasons)[number];

/** Why a charge was given back. `undelivered` ones were found later, so whether their answer arrived is in doubt. */
export const reversalReasons = ["caller_gone", "engine_timeout", "undelivered"] as const;
export type ReversalReason = (typeof reversalReasons)[number];

/** How somebody wants a search to end. */
export type SettlementRequest = {
  requestId: string;
  organizationId: string;
  key?: IdempotencyKey | undefined;
} & ({ wanted: "charge"; priceMils: number } | { wanted: "refund"; reason: RefundReason });

/** How the search has ended: by this call if `fresh`, else by whoever was first. */
export interface Decision {
  requestId: string;
  organizationId: string;
  kind: "charge" | "refund";
  chargedMils: number;
  reason: RefundReason | undefined;
  isNew: boolean;
  reversed: boolean;
  balance: VersionedBalance;
}

/** Whether a search is charged as things are: it was, and nobody has given it back. */
export const isCharged = ({ kind, reversed }: Decision) => kind === "charge" && !reversed;

const decisionRow = z.object({
  request_id: z.string(),
  organization_id: z.string(),
  kind: z.enum(["charge", "refund"]),
  amount_mils: z.number(),
  reason: z.enum(refundReasons).nullable(),
  fresh: z.boolean(),
  reversed: z.boolean(),
  balance_mils: z.number(),
  version: z.number(),
});

/**
 * Decides a batch of searches in one round trip, each exactly once; the order within an organization is kept. A search of
 * an unknown organization has no decision in the result.
 */
export async function decideEndings(
  database: Database,
  endings: readonly SettlementRequest[],
): Promise<Map<string, Decision>> {
  const { rows } = await database.query({
    name: "settle",
    text: "select * from settle($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])",
    values: [
      endings.map((ending) => ending.requestId),
      endings.map((ending) => ending.organizationId),
      endings.map((ending) => ending.wanted),
      endings.map((ending) => (ending.wanted === "charge" ? ending.priceMils : 0)),
      endings.map((ending) => (ending.wanted === "refund" ? ending.reason : null)),
      endings.map((ending) => ending.key?.hash ?? null),
      endings.map((ending) => ending.key?.fingerprint ?? null),
    ],
  });
  return new Map(
    rows.map((row) => readDecision(decisionRow.parse(row))).map((decision) => [decision.requestId, decision]),
  );
}

function readDecision(row: z.infer<typeof decisionRow>): Decision {
  return {
    requestId: row.request_id,
    organizationId: row.organization_id,
    kind: row.kind,
    chargedMils: row.kind === "charge" ? Math.abs(row.amount_mils) : 0,
    reason: row.reason ?? undefined,
    isNew: row.fresh,
    reversed: row.reversed,
    balance: { balanceMils: row.balance_mils, version: row.version },
  };
}

const reversalRow = z.object({
  organization_id: z.string(),
  reversed: z.array(z.string()),
  reversed_mils: z.number(),
  balance_mils: z.number(),
  version: z.number(),
});

export interface Reversal {
  organizationId: string;
  requestIds: string[];
  /** What these were charged, together. */
  mils: number;
  balance: VersionedBalance;
}

/**
 * Gives back unkeyed charges that nobody has confirmed as delivered. One that was confirmed, reversed before or made
 * under a key stays as it is. Returns per organization what was reversed, and its newest balance.
 */
export async function reverseCharges(
  database: Database,
  charges: readonly { organizationId: string; requestId: string }[],
  reason: ReversalReason,
): Promise<Reversal[]> {
  const { rows } = await database.query({
    name: "reverse_charges",
    // This statement sees what was there when it began: the charges, which whoever reverses has seen, not yet the reversals.
    text: `select r.*, (select coalesce(-sum(l.amount_mils), 0)::bigint from ledger_entries l
                        where l.request_id = any(r.reversed) and l.kind = 'charge') as reversed_mils
           from reverse_charges($1, $2, $3) r`,
    values: [charges.map((charge) => charge.organizationId), charges.map((charge) => charge.requestId), reason],
  });
  return rows
    .map((row) => reversalRow.parse(row))
    .map((row) => ({
      organizationId: row.organization_id,
      requestIds: row.reversed,
      mils: row.reversed_mils,
      balance: { balanceMils: row.balance_mils, version: row.version },
    }));
}

/** Confirms that the answers of these searches were delivered; from then on their charges cannot be reversed. */
export async function confirmDelivered(database: Database, requestIds: readonly string[]): Promise<void> {
  await database.query({
    name: "confirm_delivered",
    text: "delete from undelivered where request_id = any($1)",
    values: [requestIds],
  });
}

const undeliveredRow = z.object({ request_id: z.string(), organization_id: z.string() });

/** Charges older than the age that nobody has confirmed, oldest first. */
export async function listUndelivered(database: Database, ageMs: number, limit: number) {
  const { rows } = await database.query(
    `select request_id, organization_id from undelivered where charged_at < now() - make_interval(secs => $1)
     order by charged_at limit $2`,
    [ageMs / 1_000, limit],
  );
  return rows
    .map((row) => undeliveredRow.parse(row))
    .map((row) => ({ requestId: row.request_id, organizationId: row.organization_id }));
}

const grantRow = z.object({ fresh: z.boolean(), balance_mils: z.number(), version: z.number() });

/**
 * Adds credit. A grant counts once however often it is sent with the same id.
 * @returns undefined where the organization does not exist.
 */
export async function grantCredit(
  database: Database,
  grant: { organizationId: string; grantId: string; mils: number; reason: string },
): Promise<(VersionedBalance & { fresh: boolean }) | undefined> {
  const { rows } = await database.query("select * from grant_credit($1, $2, $3, $4)", [
    grant.organizationId,
    grant.grantId,
    grant.mils,
    grant.reason,
  ]);
  if (!rows[0]) return undefined;
  const row = grantRow.parse(rows[0]);
  return { fresh: row.fresh, balanceMils: row.balance_mils, version: row.version };
}

// By the SQLSTATEs of a violated check and of a violated unique index.
const grantRefusals: Record<string, string> = {
  "23514": `A balance is at most ${Number.MAX_SAFE_INTEGER} mils.`,
  "23505": "This grant id was used for another organization.",
};

/** Why the ledger took no such grant or top-up, as a sentence; undefined where something else went wrong. */
export function grantRefusal(error: unknown): string | undefined {
  return grantRefusals[sqlStateOf(error) ?? ""];
}

const balanceRow = z.object({ balance_mils: z.number(), version: z.number() });

/** An organization's current balance, or undefined where there is no such organization. */
export async function readBalance(database: Database, organizationId: string): Promise<VersionedBalance | undefined> {
  const { rows } = await database.query({
    name: "read_pair",
    text: "select balance_mils, version from organizations where id = $1",
    values: [organizationId],
  });
  if (!rows[0]) return undefined;
  const row = balanceRow.parse(rows[0]);
  return { balanceMils: row.balance_mils, version: row.version };
}

const paidRow = z.object({ fingerprint: z.string() });

/**
 * The fingerprint of the query that a key has paid for, or undefined where it has not paid, or where its 24 hours end
 * before a search that begins now would: admitted for nothing, that one would pay nothing for another 24 hours.
 */
export async function readPaidKey(
  database: Database,
  organizationId: string,
  keyHash: string,
): Promise<string | undefined> {
  const { rows } = await database.query({
    name: "read_paid_key",
    text: `select fingerprint from paid_keys
           where organization_id = $1 and key_hash = $2 and expires_at > now() + make_interval(secs => $3)`,
    values: [organizationId, keyHash, protocolTimes.paidKeyMarginMs / 1_000],
  });
  return rows[0] ? paidRow.parse(rows[0]).fingerprint : undefined;
}

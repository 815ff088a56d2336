import { z } from "zod";
import { sqlStateOf } from "../database/transient-errors.ts";
import type { Database } from "../database/pool.ts";
import type { Querying } from "../database/transaction.ts";
import type { IdempotencyKey } from "./idempotency-key.ts";
import { expandAnswer, type StoredAnswer } from "./stored-answers.ts";
import type { VersionedBalance } from "./versioned-balance.ts";

/**
 * The ledger in Postgres, which is the truth about money. Every search whose end reached Postgres has one deciding entry,
 * a charge or a refund. The first process that inserts it decides, and all others follow. Only the functions of the
 * database write (`settle`, `reverse_charges`, `grant_credit`, `topup`); each locks the organization's row first.
 */

/** Why a search was not charged. `settle()` finds the first three; the others come from the process that settles. */
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

/** How a process wants a search to end. */
export type SettlementRequest = {
  requestId: string;
  organizationId: string;
  key?: IdempotencyKey | undefined;
} & (
  | {
      wanted: "charge";
      priceMils: number;
      /** Under a key: the answer as it is if this search is charged, compressed. It is stored with the charge. */
      answer?: Buffer | undefined;
    }
  | { wanted: "refund"; reason: RefundReason }
);

/** How a search has ended: by this call if `isNew`, otherwise by an earlier one. */
export interface Decision {
  requestId: string;
  organizationId: string;
  kind: "charge" | "refund";
  chargedMils: number;
  reason: RefundReason | undefined;
  isNew: boolean;
  reversed: boolean;
  balance: VersionedBalance;
  /** The answer that an earlier charge stored under the key of this search: what its caller gets. */
  stored?: StoredAnswer;
}

/** Whether a search was charged and the charge was not reversed. */
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
  answer_of: z.string().nullish(),
  answer: z.instanceof(Buffer).nullish(),
});

const settleTypes = "$1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[]";
const unkeyedStatement = { name: "settle", text: `select * from settle(${settleTypes})` };
const keyedStatement = {
  name: "settle_with_answers",
  text: `select * from settle_with_answers(${settleTypes}, $8::bytea[])`,
};

/**
 * Decides a batch of searches in one round trip, each exactly once, in their order within an organization. Running it
 * again returns the same decisions.
 * @returns by request id; a search of an unknown organization has no decision.
 */
export async function decideSettlements(
  database: Database,
  requests: readonly SettlementRequest[],
): Promise<Map<string, Decision>> {
  const isKeyed = requests.some((request) => request.wanted === "charge" && request.key);
  const { rows } = await database.query({
    ...(isKeyed ? keyedStatement : unkeyedStatement),
    values: [
      requests.map((request) => request.requestId),
      requests.map((request) => request.organizationId),
      requests.map((request) => request.wanted),
      requests.map((request) => (request.wanted === "charge" ? request.priceMils : 0)),
      requests.map((request) => (request.wanted === "refund" ? request.reason : null)),
      requests.map((request) => request.key?.hash ?? null),
      requests.map((request) => request.key?.fingerprint ?? null),
      ...(isKeyed ? [requests.map((request) => (request.wanted === "charge" && request.answer) || null)] : []),
    ],
  });
  const decisions = await Promise.all(rows.map((row) => readDecision(decisionRow.parse(row))));
  return new Map(decisions.map((decision) => [decision.requestId, decision]));
}

async function readDecision(row: z.infer<typeof decisionRow>): Promise<Decision> {
  const { answer_of: requestId, answer } = row;
  return {
    ...(requestId && answer && { stored: { requestId, body: await expandAnswer(answer) } }),
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

const grantRow = z.object({ fresh: z.boolean(), balance_mils: z.number(), version: z.number() });

/**
 * Adds credit. A grant counts once, however often it is sent with the same id.
 * @returns undefined if the organization does not exist.
 */
export async function grantCredit(
  database: Querying,
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

// By the SQLSTATEs of a violated check and a violated unique index.
const grantRefusals: Record<string, string> = {
  "23514": `A balance is at most ${Number.MAX_SAFE_INTEGER} mils.`,
  "23505": "This grant id was used for another organization.",
};

/** Why the ledger refused a grant or top-up, as a sentence; undefined for any other error. */
export function grantRefusal(error: unknown): string | undefined {
  return grantRefusals[sqlStateOf(error) ?? ""];
}

const balanceRow = z.object({ balance_mils: z.number(), version: z.number() });

/** Reads an organization's current balance. @returns undefined if the organization does not exist. */
export async function readBalance(database: Database, organizationId: string): Promise<VersionedBalance | undefined> {
  const { rows } = await database.query({
    name: "read_balance",
    text: "select balance_mils, version from organizations where id = $1",
    values: [organizationId],
  });
  if (!rows[0]) return undefined;
  const row = balanceRow.parse(rows[0]);
  return { balanceMils: row.balance_mils, version: row.version };
}

const creditRow = balanceRow.extend({ decided: z.array(z.string()) });

/**
 * Reads an organization's current balance, and which of these searches are decided: their charges are in that balance.
 * @returns undefined if the organization does not exist.
 */
export async function readBalanceAndDecided(
  database: Database,
  organizationId: string,
  requestIds: readonly string[],
): Promise<{ balance: VersionedBalance; decided: string[] } | undefined> {
  const { rows } = await database.query({
    name: "read_balance_and_decided",
    text: `select balance_mils, version, array(select l.request_id from ledger_entries l
             where l.request_id = any($2) and l.kind in ('charge', 'refund')) as decided
           from organizations where id = $1`,
    values: [organizationId, requestIds],
  });
  if (!rows[0]) return undefined;
  const row = creditRow.parse(rows[0]);
  return { balance: { balanceMils: row.balance_mils, version: row.version }, decided: row.decided };
}

const comparedRow = balanceRow.extend({ id: z.string(), ledger_mils: z.number() });

/** An organization's balance, and what its newest ledger entry says that the balance is. They differ only by a bug. */
export interface ComparedBalance {
  organizationId: string;
  balance: VersionedBalance;
  ledgerMils: number;
}

/** Lists organizations with their balances in the order of their ids, from the first id after `after`. */
export async function listBalances(database: Database, after: string, limit: number): Promise<ComparedBalance[]> {
  const { rows } = await database.query(
    `select o.id, o.balance_mils, o.version, coalesce(l.balance_after_mils, 0) as ledger_mils
     from organizations o left join ledger_entries l on l.organization_id = o.id and l.version = o.version
     where o.id > $1 order by o.id limit $2`,
    [after, limit],
  );
  return rows
    .map((row) => comparedRow.parse(row))
    .map((row) => ({
      organizationId: row.id,
      balance: { balanceMils: row.balance_mils, version: row.version },
      ledgerMils: row.ledger_mils,
    }));
}

import type { QueryConfig } from "pg";
import { z } from "zod";
import { toByteaArray } from "../database/binary-array.ts";
import { rowOf, valueOf } from "../database/row.ts";
import type { Database } from "../database/pool.ts";
import type { Querying } from "../database/transaction.ts";
import { sqlStateOf } from "../database/transient-errors.ts";
import { type RefundReason, refundReasons } from "../outcomes.ts";
import type { IdempotencyKey, PayerLimits } from "../queue/search-job.ts";
import { expandAnswer } from "../compress-answer.ts";
import type { StoredAnswer } from "./stored-answers.ts";

/**
 * The ledger in Postgres, the truth about money. Every search whose end reached Postgres has one decision: a charge, which is an
 * entry of the ledger, or a refund, which is not. The first process that inserts a decision decides, and all others follow.
 * Only functions of the database write (`decide_searches`, `charge_alone`, `reverse_charges`, `change_credit`, `topup`), and each
 * locks the organization's row first.
 */

/** An organization's balance, and the number of ledger entries that made it. The higher version is the newer balance. */
export interface VersionedBalance {
  balanceMils: number;
  version: number;
  /** What the organization spent by this version, as text of `spending_text()`; absent if unknown, or without limits. */
  spending?: string | undefined;
  /** The id of the search whose charge made this version; absent if unknown. */
  entryId?: string | undefined;
}

/** What a limited token spent by a version of its organization's balance, as text of `spending_text()`. */
export interface TokenSpending {
  tokenId: string;
  version: number;
  spending: string;
}

/** @throws {TypeError} if there is none. */
export const newestBalance = (balances: readonly VersionedBalance[]): VersionedBalance =>
  balances.reduce((newest, balance) => (balance.version > newest.version ? balance : newest));

/** How a process wants a search to end. */
export type SettlementRequest = { requestId: string; organizationId: string; key?: IdempotencyKey | undefined } & (
  | {
      wanted: "charge";
      tokenId: string;
      priceMils: number;
      /** The limits that admitted the search. */
      limits: PayerLimits;
      /** The compressed answer, required under a key. It is stored with the charge. */
      answer?: Buffer | undefined;
    }
  /** The sweeper does not know the token: a hold does not name it. */
  | { wanted: "refund"; tokenId?: string | undefined; reason: RefundReason }
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
  /** The balance before the charges of this search's transaction, with the last of these; absent if it charged the organization nothing. */
  before?: VersionedBalance | undefined;
  /** What the token of the search spent by now; absent if it never had a limit. */
  token?: TokenSpending | undefined;
  /** The answer that an earlier charge stored under the key of this search: what its caller gets. */
  stored?: StoredAnswer;
}

/** Whether a search was charged and the charge was not reversed. */
export const isCharged = ({ kind, reversed }: Decision) => kind === "charge" && !reversed;

const decisionRow = rowOf({
  requestId: z.string(),
  organizationId: z.string(),
  kind: z.enum(["charge", "refund"]),
  amountMils: z.number(),
  reason: z.enum(refundReasons).nullable(),
  fresh: z.boolean(),
  reversed: z.boolean(),
  balanceMils: z.number(),
  version: z.number(),
  spending: z.string().nullable(),
  tokenId: z.string().nullable(),
  tokenSpending: z.string().nullable(),
  answerOf: z.string().nullable(),
  answer: z.instanceof(Buffer).nullable(),
});

// Longer than a settlement takes. Waiting longer for a row would delay the other organizations of the batch.
const lockWaitMs = 250;
/**
 * Behind the first argument of a function, or of the key of a row: evaluated before the function is called or the row is locked, it
 * sets how long this transaction waits for a lock from then on.
 */
export const waitingBriefly = `from set_config('lock_timeout', '${lockWaitMs}', true)`;
const decideStatement = {
  name: "decide_searches",
  text: `select * from decide_searches((select $1::text[] ${waitingBriefly}), $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])`,
};
// For one search, in half the time.
const chargeStatement = {
  name: "charge_alone",
  text: `select * from charge_alone((select $1::text ${waitingBriefly}), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
};

/**
 * Decides a batch of searches in one round trip, each exactly once, in their order within an organization. Running it
 * again returns the same decisions. A row that another transaction keeps locked is waited for briefly.
 * @returns by request id; a search of an unknown organization has no decision.
 */
export async function decideSettlements(
  database: Database,
  requests: readonly SettlementRequest[],
): Promise<Map<string, Decision>> {
  const { rows } = await database.query(statementFor(requests));
  const decisions = await Promise.all(rows.map((row) => readDecision(decisionRow.parse(row))));
  const byId = new Map(decisions.map((decision) => [decision.requestId, decision]));
  // Postgres charges in the order of the requests. One that is repeated counts at its first place.
  const ids = [...new Set(requests.map(({ requestId }) => requestId))];
  for (const own of Map.groupBy(decisions, ({ organizationId }) => organizationId).values()) noteCharges(own, ids);
  return byId;
}

/** Adds to the decisions of an organization what its balance was before the charges of this call, and which of them was the last. */
function noteCharges(own: readonly Decision[], ids: readonly string[]): void {
  const charges = own.filter(({ isNew, kind }) => isNew && kind === "charge");
  if (charges.length === 0) return;
  const charged = new Set(charges.map(({ requestId }) => requestId));
  const entryId = ids.findLast((id) => charged.has(id));
  const mils = charges.reduce((sum, { chargedMils }) => sum + chargedMils, 0);
  for (const decision of own) {
    const { balanceMils, version } = decision.balance;
    decision.before = { balanceMils: balanceMils + mils, version: version - charges.length, entryId };
    decision.balance.entryId = entryId;
  }
}

function statementFor(requests: readonly SettlementRequest[]): QueryConfig {
  const [only] = requests;
  if (only?.wanted === "charge" && requests.length === 1) {
    const { organizationId, requestId, priceMils, tokenId, key, answer } = only;
    const values = [organizationId, requestId, priceMils, tokenId, key?.hash, key?.fingerprint, key && answer];
    return { ...chargeStatement, values: [...values, ...admittedLimits(only)] };
  }
  const limits = requests.map(admittedLimits);
  return {
    ...decideStatement,
    values: [
      requests.map((request) => request.requestId),
      requests.map((request) => request.organizationId),
      requests.map((request) => request.wanted),
      requests.map((request) => (request.wanted === "charge" ? request.priceMils : 0)),
      requests.map((request) => (request.wanted === "refund" ? request.reason : null)),
      requests.map((request) => request.tokenId ?? null),
      requests.map((request) => request.key?.hash ?? null),
      requests.map((request) => request.key?.fingerprint ?? null),
      toByteaArray(requests.map((request) => (request.wanted === "charge" && request.key && request.answer) || null)),
      ...[0, 1, 2, 3].map((at) => limits.map((ofSearch) => ofSearch[at] ?? null)),
    ],
  };
}

/** The mils a day and a month of the organization, then of the token, that admitted a search; undefined without that limit. */
function admittedLimits(request: SettlementRequest): (number | undefined)[] {
  if (request.wanted === "refund") return [];
  const { organization, token } = request.limits;
  return [organization?.dayMils, organization?.monthMils, token?.dayMils, token?.monthMils];
}

async function readDecision(row: z.infer<typeof decisionRow>): Promise<Decision> {
  const { balanceMils, version, spending, tokenId, tokenSpending, answerOf, answer, ...decided } = row;
  const { requestId, organizationId, kind, amountMils, reason, fresh: isNew, reversed } = decided;
  return {
    requestId,
    organizationId,
    kind,
    chargedMils: kind === "charge" ? Math.abs(amountMils) : 0,
    reason: reason ?? undefined,
    isNew,
    reversed,
    balance: { balanceMils, version, ...(spending !== null && { spending }) },
    ...(tokenId && tokenSpending && { token: { tokenId, version, spending: tokenSpending } }),
    ...(answerOf && answer && { stored: { requestId: answerOf, body: await expandAnswer(answer) } }),
  };
}

/** A grant or an operator's correction, as an entry of the ledger. */
export interface BalanceChange {
  organizationId: string;
  /** The id of the grant or correction. Under it the change counts once, however often it is sent. */
  grantId: string;
  /** Never 0. A correction below 0 takes credit away. */
  mils: number;
  reason: string;
}

const changedRow = rowOf({ fresh: z.boolean(), balanceMils: z.number(), version: z.number() });

function changeBy(kind: "grant" | "correction") {
  return async (
    database: Querying,
    { organizationId, grantId, mils, reason }: BalanceChange,
  ): Promise<(VersionedBalance & { fresh: boolean }) | undefined> => {
    const values = [kind, organizationId, grantId, mils, reason];
    const { rows } = await database.query("select * from change_credit($1, $2, $3, $4, $5)", values);
    return rows[0] && changedRow.parse(rows[0]);
  };
}

/**
 * Adds credit.
 * @returns undefined if the organization does not exist.
 * @throws what {@link creditRefusal} explains.
 */
export const grantCredit = changeBy("grant");

/**
 * Corrects a balance. It is no spending. Searches that run may then be refused at their end, which costs their callers nothing.
 * @returns undefined if the organization does not exist.
 * @throws what {@link creditRefusal} explains, if the balance would fall below 0 or grow too large.
 */
export const correctCredit = changeBy("correction");

/** Why the ledger refused a grant, a top-up or a correction, as a sentence; undefined for any other error. */
export function creditRefusal(kind: "grant" | "correction", error: unknown): string | undefined {
  const isGrant = kind === "grant";
  // By the SQLSTATEs of a violated check and a violated unique index.
  const refusals: Record<string, string> = {
    "23514": isGrant
      ? `A balance is at most ${Number.MAX_SAFE_INTEGER} mils.`
      : `A balance is at least 0 and at most ${Number.MAX_SAFE_INTEGER} mils. Nothing was changed.`,
    "23505": `This ${kind} id was used for another organization.`,
  };
  return refusals[sqlStateOf(error) ?? ""];
}

const creditRow = rowOf({
  balanceMils: z.number(),
  version: z.number(),
  spending: z.string().nullable(),
  tokenSpending: z.string().nullable(),
  decided: z.array(z.string()),
});

/** An organization's credit at one moment, with what one of its tokens spent if it ever had a limit. */
export interface Credit {
  balance: VersionedBalance;
  token: TokenSpending | undefined;
  /** Of the searches asked about: those that are decided. The balance contains their charges. */
  decided: string[];
}

const creditWith = (decided: string) =>
  `select o.balance_mils, o.version, spending_text(o.day, o.spent_day_mils, o.spent_month_mils) as spending,
     spending_text(t.day, t.spent_day_mils, t.spent_month_mils) as token_spending, ${decided} as decided
   from organization_spending o left join token_spending t on t.token_id = $2
   where o.organization_id = $1`;
// The first does not wait for a lock of the ledger.
const creditStatement = { name: "read_credit", text: creditWith("array[]::text[]") };
const creditAndDecidedStatement = {
  name: "read_credit_and_decided",
  text: creditWith(
    `array(select l.request_id from ledger_entries l where l.request_id = any($3) and l.kind = 'charge'
       union all select f.request_id from refunds f where f.request_id = any($3))`,
  ),
};

/** Reads an organization's current credit. @returns undefined if the organization does not exist. */
export async function readCredit(
  database: Database,
  organizationId: string,
  { tokenId, requestIds = [] }: { tokenId?: string; requestIds?: readonly string[] } = {},
): Promise<Credit | undefined> {
  const { rows } =
    requestIds.length > 0
      ? await database.query({ ...creditAndDecidedStatement, values: [organizationId, tokenId, requestIds] })
      : await database.query({ ...creditStatement, values: [organizationId, tokenId] });
  if (!rows[0]) return undefined;
  const { balanceMils, version, spending, tokenSpending, decided } = creditRow.parse(rows[0]);
  return {
    balance: { balanceMils, version, ...(spending !== null && { spending }) },
    token: tokenId && tokenSpending !== null ? { tokenId, version, spending: tokenSpending } : undefined,
    decided,
  };
}

/** Deletes the rows of refunds that are 30 days old, at most so many. `refund_counts` stays. @returns how many. */
export async function clearOldRefunds(database: Database, limit: number): Promise<number> {
  const { rows } = await database.query("select clear_old_refunds($1) as deleted", [limit]);
  return valueOf(z.number(), rows[0]);
}

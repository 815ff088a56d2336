import { gunzipSync } from "node:zlib";
import type { Decision, SettlementRequest, RefundReason } from "../../../../shared/credits/ledger.ts";
import type { Reversal } from "../../../../shared/credits/deliveries.ts";
import type { VersionedBalance } from "../../../../shared/credits/versioned-balance.ts";

/** The expected content of Postgres, computed one search after the other. */

export interface Entry {
  version: number;
  kind: "grant" | "charge" | "refund" | "reversal";
  mils: number;
  /** The balance after this entry. */
  balanceMils: number;
  /** The request or the grant. */
  subject: string;
  reason: string | null;
}

export interface Account extends VersionedBalance {
  entries: Entry[];
}

export interface ModelAnswer {
  requestId: string;
  /** As it is stored, in hexadecimal. */
  compressed: string;
}

export interface PostgresModel {
  accounts: Map<string, Account>;
  decided: Map<string, Pick<Decision, "organizationId" | "kind" | "chargedMils" | "reason">>;
  reversed: Set<string>;
  undelivered: Set<string>;
  /** The fingerprint that a key has paid for, by {@link keyOf}. */
  paid: Map<string, string>;
  /** The answer under a key that has paid, by {@link keyOf}. */
  answers: Map<string, ModelAnswer>;
  /** The organization of each grant, by the id of the grant. */
  grants: Map<string, string>;
}

export const keyOf = (organizationId: string, keyHash: string) => `${organizationId} ${keyHash}`;

export function accountOf(postgres: PostgresModel, organizationId: string): Account {
  const account = postgres.accounts.get(organizationId);
  if (!account) throw new Error(`no account of ${organizationId}`);
  return account;
}

export function balanceOf(postgres: PostgresModel, organizationId: string): VersionedBalance {
  const { balanceMils, version } = accountOf(postgres, organizationId);
  return { balanceMils, version };
}

function write(postgres: PostgresModel, organizationId: string, entry: Omit<Entry, "version" | "balanceMils">): void {
  const account = accountOf(postgres, organizationId);
  account.balanceMils += entry.mils;
  account.version += 1;
  account.entries.push({ version: account.version, balanceMils: account.balanceMils, ...entry });
}

export function decideInModel(postgres: PostgresModel, settlements: readonly SettlementRequest[]): Decision[] {
  const firsts = settlements.filter(
    ({ requestId }, at) => settlements.findIndex((settlement) => settlement.requestId === requestId) === at,
  );
  const beginsMils = new Map([...postgres.accounts].map(([id, { balanceMils }]) => [id, balanceMils]));
  const askedMils = new Map<string, number>();
  const fresh = new Set<string>();
  for (const settlement of firsts) {
    const { requestId, organizationId, key } = settlement;
    if (postgres.decided.has(requestId)) continue;
    const verdict = judge(postgres, settlement, (mils) => {
      // The first search of a batch that exceeds the balance is refused, and so are all later ones.
      const asked = (askedMils.get(organizationId) ?? 0) + mils;
      askedMils.set(organizationId, asked);
      return asked <= (beginsMils.get(organizationId) ?? 0);
    });
    const charged = verdict.kind === "charge";
    const mils = charged ? 0 - verdict.chargedMils : 0;
    write(postgres, organizationId, { kind: verdict.kind, mils, subject: requestId, reason: verdict.reason ?? null });
    postgres.decided.set(requestId, { organizationId, ...verdict });
    fresh.add(requestId);
    if (charged && key) {
      postgres.paid.set(keyOf(organizationId, key.hash), key.fingerprint);
      if (settlement.wanted === "charge" && settlement.answer)
        postgres.answers.set(keyOf(organizationId, key.hash), {
          requestId,
          compressed: settlement.answer.toString("hex"),
        });
    }
    if (charged && !key) postgres.undelivered.add(requestId);
  }
  const bringsAnswers = settlements.some(({ wanted, key }) => wanted === "charge" && key);
  return firsts.flatMap((settlement) => {
    const { requestId } = settlement;
    const known = postgres.decided.get(requestId);
    if (!known) return [];
    const reversed = postgres.reversed.has(requestId);
    // A charge by this very call has brought its answer.
    const paysNow = known.kind === "charge" && fresh.has(requestId);
    const stored = bringsAnswers && !paysNow ? storedFor(postgres, settlement) : undefined;
    return [
      {
        ...(stored && { stored }),
        requestId,
        ...known,
        isNew: fresh.has(requestId),
        reversed,
        balance: balanceOf(postgres, known.organizationId),
      },
    ];
  });
}

/** The answer that another charge stored for a search: its own of an earlier call, or the one of its key. */
function storedFor(postgres: PostgresModel, { requestId, organizationId, key }: SettlementRequest) {
  const decided = postgres.decided.get(requestId);
  if (!key || postgres.paid.get(keyOf(organizationId, key.hash)) !== key.fingerprint) return undefined;
  const answer = postgres.answers.get(keyOf(organizationId, key.hash));
  const isOwed = decided?.reason === "already_paid" || (decided?.kind === "charge" && answer?.requestId === requestId);
  return answer && isOwed ? expandedAnswer(answer) : undefined;
}

export const expandedAnswer = ({ requestId, compressed }: ModelAnswer) => ({
  requestId,
  body: gunzipSync(Buffer.from(compressed, "hex")),
});

function judge(postgres: PostgresModel, settlement: SettlementRequest, covers: (mils: number) => boolean) {
  const refund = (reason: RefundReason) => ({ kind: "refund" as const, chargedMils: 0, reason });
  if (settlement.wanted === "refund") return refund(settlement.reason);
  const paid = settlement.key && postgres.paid.get(keyOf(settlement.organizationId, settlement.key.hash));
  if (paid !== undefined)
    return refund(paid === settlement.key?.fingerprint ? "already_paid" : "idempotency_key_reused");
  if (!covers(settlement.priceMils)) return refund("out_of_credits");
  return { kind: "charge" as const, chargedMils: settlement.priceMils, reason: undefined };
}

/** Without the mils: they count only charges that existed when the call began, which the model does not know in a race. */
export type Reversed = Omit<Reversal, "mils">;

export function reverseInModel(
  postgres: PostgresModel,
  charges: readonly { organizationId: string; requestId: string }[],
  reason: string,
): Reversed[] {
  const named = new Set(charges.map(({ requestId }) => requestId));
  return [...new Set(charges.map(({ organizationId }) => organizationId))].map((organizationId) => {
    const given = accountOf(postgres, organizationId).entries.filter(
      ({ kind, subject }) => kind === "charge" && named.has(subject) && postgres.undelivered.has(subject),
    );
    for (const { mils, subject } of given) {
      write(postgres, organizationId, { kind: "reversal", mils: 0 - mils, subject, reason });
      postgres.undelivered.delete(subject);
      postgres.reversed.add(subject);
    }
    return {
      organizationId,
      requestIds: given.map(({ subject }) => subject),
      balance: balanceOf(postgres, organizationId),
    };
  });
}

export type Granted = (VersionedBalance & { fresh: boolean }) | "refused";

export function grantInModel(
  postgres: PostgresModel,
  grant: { organizationId: string; grantId: string; mils: number; reason: string },
): Granted {
  const { organizationId, grantId, mils, reason } = grant;
  const owner = postgres.grants.get(grantId);
  if (owner !== undefined && owner !== organizationId) return "refused";
  if (owner === undefined) write(postgres, organizationId, { kind: "grant", mils, subject: grantId, reason });
  postgres.grants.set(grantId, organizationId);
  return { fresh: owner === undefined, ...balanceOf(postgres, organizationId) };
}

import { zstdDecompressSync } from "node:zlib";
import type {
  BalanceChange,
  Decision,
  SettlementRequest,
  VersionedBalance,
} from "../../../../shared/credits/ledger.ts";
import type { RefundReason } from "../../../../shared/outcomes.ts";
import type { Reversal } from "../../../../shared/credits/deliveries.ts";
import { guardOf, spendingOf, tokenSpendingOf } from "./limits-model.ts";
import { accountOf, type Entry, keyOf, type ModelAnswer, type PostgresModel } from "./postgres-state.ts";

/** The expected content of Postgres, computed one search after the other. */

export function balanceOf(postgres: PostgresModel, organizationId: string): VersionedBalance {
  return { ...pairOf(postgres, organizationId), ...spendingOf(postgres, organizationId, organizationId) };
}

/** The balance as grants and reversals return it, without what was spent. */
export function pairOf(postgres: PostgresModel, organizationId: string): VersionedBalance {
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
  const guard = guardOf(postgres);
  // Of several searches under one key only the first asks the guard; if it is refused, the others are refused like it.
  const refusedKeys = new Map<string, RefundReason>();
  const fresh = new Set<string>();
  const before = new Map<string, VersionedBalance>();
  for (const settlement of firsts) {
    const { requestId, organizationId, key, tokenId = null } = settlement;
    if (postgres.decided.has(requestId)) continue;
    const verdict = judge(postgres, settlement, refusedKeys, guard);
    const charged = verdict.kind === "charge";
    if (verdict.kind === "charge") {
      if (!before.has(organizationId)) before.set(organizationId, pairOf(postgres, organizationId));
      const mils = 0 - verdict.chargedMils;
      write(postgres, organizationId, { kind: "charge", mils, subject: requestId, reason: null, tokenId });
    } else {
      const { refunds, version } = accountOf(postgres, organizationId);
      refunds.push({ version, subject: requestId, reason: verdict.reason, tokenId });
    }
    const owners = [organizationId, tokenId ?? ""];
    postgres.chargedUnder.set(requestId, new Map(owners.map((id) => [id, postgres.limits.get(id)?.at(-1) ?? {}])));
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
  return firsts.flatMap((settlement) => {
    const { requestId } = settlement;
    const known = postgres.decided.get(requestId);
    if (!known) return [];
    const reversed = postgres.reversed.has(requestId);
    // A charge by this very call has brought its answer.
    const paysNow = known.kind === "charge" && fresh.has(requestId);
    const stored = settlement.wanted === "charge" && !paysNow ? storedFor(postgres, settlement) : undefined;
    const { entries, refunds } = accountOf(postgres, known.organizationId);
    const decision = [...entries, ...refunds].find(({ subject }) => subject === requestId);
    const token = tokenSpendingOf(postgres, known.organizationId, decision?.tokenId);
    const charged = before.get(known.organizationId);
    const last = charged && { entryId: entries.at(-1)?.subject };
    return [
      {
        ...(stored && { stored }),
        ...(token && { token }),
        requestId,
        ...known,
        isNew: fresh.has(requestId),
        reversed,
        ...(charged && { before: { ...charged, ...last } }),
        balance: { ...balanceOf(postgres, known.organizationId), ...last },
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
  body: zstdDecompressSync(Buffer.from(compressed, "hex")),
});

function judge(
  postgres: PostgresModel,
  settlement: SettlementRequest,
  refusedKeys: Map<string, RefundReason>,
  guard: ReturnType<typeof guardOf>,
) {
  const refund = (reason: RefundReason) => ({ kind: "refund" as const, chargedMils: 0, reason });
  if (settlement.wanted === "refund") return refund(settlement.reason);
  const { organizationId, key } = settlement;
  const keyName = key && keyOf(organizationId, key.hash);
  const paid = keyName && postgres.paid.get(keyName);
  if (paid !== undefined) return refund(paid === key?.fingerprint ? "already_paid" : "idempotency_key_reused");
  const refused = (keyName && refusedKeys.get(keyName)) ?? guard(settlement);
  if (refused && keyName) refusedKeys.set(keyName, refused);
  if (refused) return refund(refused);
  return { kind: "charge" as const, chargedMils: settlement.priceMils, reason: undefined };
}

/** Without what depends on mils: they count only charges that existed when the call began, which the model does not know in a race. */
export type Reversed = Omit<Reversal, "mils" | "before">;

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
    for (const { mils, subject, tokenId } of given) {
      write(postgres, organizationId, { kind: "reversal", mils: 0 - mils, subject, reason, tokenId });
      postgres.undelivered.delete(subject);
      postgres.reversed.add(subject);
    }
    return {
      organizationId,
      requestIds: given.map(({ subject }) => subject),
      balance: pairOf(postgres, organizationId),
    };
  });
}

/** The balance after a grant or correction, and whether this call made it. */
export type Changed = (VersionedBalance & { fresh: boolean }) | "refused";

export function grantInModel(
  postgres: PostgresModel,
  grant: { organizationId: string; grantId: string; mils: number; reason: string },
): Changed {
  const { organizationId, grantId, mils, reason } = grant;
  const owner = postgres.grants.get(grantId);
  if (owner !== undefined && owner !== organizationId) return "refused";
  const entry = { kind: "grant" as const, mils, subject: grantId, reason, tokenId: null };
  if (owner === undefined) write(postgres, organizationId, entry);
  postgres.grants.set(grantId, organizationId);
  return { fresh: owner === undefined, ...pairOf(postgres, organizationId) };
}

export function correctInModel(postgres: PostgresModel, correction: BalanceChange): Changed {
  const { organizationId, grantId: correctionId, mils, reason } = correction;
  const owner = postgres.corrections.get(correctionId);
  if (owner === organizationId) return { fresh: false, ...pairOf(postgres, organizationId) };
  if (owner !== undefined || accountOf(postgres, organizationId).balanceMils + mils < 0) return "refused";
  write(postgres, organizationId, { kind: "correction", mils, subject: correctionId, reason, tokenId: null });
  postgres.corrections.set(correctionId, organizationId);
  return { fresh: true, ...pairOf(postgres, organizationId) };
}

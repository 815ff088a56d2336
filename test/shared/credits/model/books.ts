import type { Decision, SettlementRequest, RefundReason } from "../../../../shared/credits/ledger.ts";
import type { Reversal } from "../../../../shared/credits/deliveries.ts";
import type { VersionedBalance } from "../../../../shared/credits/versioned-balance.ts";

/** What Postgres should hold, computed one search after the other with the simplest words there are. */

export interface Entry {
  version: number;
  kind: "grant" | "charge" | "refund" | "reversal";
  mils: number;
  /** Balance behind it. */
  balanceMils: number;
  /** The request or the grant. */
  subject: string;
  reason: string | null;
}

export interface Account extends VersionedBalance {
  entries: Entry[];
}

export interface Books {
  accounts: Map<string, Account>;
  decided: Map<string, Pick<Decision, "organizationId" | "kind" | "chargedMils" | "reason">>;
  reversed: Set<string>;
  undelivered: Set<string>;
  /** The fingerprint that a key has paid for, by {@link keyOf}. */
  paid: Map<string, string>;
  /** Whose a grant is. */
  grants: Map<string, string>;
}

export const keyOf = (organizationId: string, keyHash: string) => `${organizationId} ${keyHash}`;

export function accountOf(books: Books, organizationId: string): Account {
  const account = books.accounts.get(organizationId);
  if (!account) throw new Error(`no account of ${organizationId}`);
  return account;
}

export function balanceOf(books: Books, organizationId: string): VersionedBalance {
  const { balanceMils, version } = accountOf(books, organizationId);
  return { balanceMils, version };
}

function write(books: Books, organizationId: string, entry: Omit<Entry, "version" | "balanceMils">): void {
  const account = accountOf(books, organizationId);
  account.balanceMils += entry.mils;
  account.version += 1;
  account.entries.push({ version: account.version, balanceMils: account.balanceMils, ...entry });
}

export function decideInBooks(books: Books, endings: readonly SettlementRequest[]): Decision[] {
  const firsts = endings.filter(
    ({ requestId }, at) => endings.findIndex((ending) => ending.requestId === requestId) === at,
  );
  const beginsMils = new Map([...books.accounts].map(([id, { balanceMils }]) => [id, balanceMils]));
  const askedMils = new Map<string, number>();
  const fresh = new Set<string>();
  for (const ending of firsts) {
    const { requestId, organizationId, key } = ending;
    if (books.decided.has(requestId)) continue;
    const verdict = judge(books, ending, (mils) => {
      // In one batch, what is over the balance is refused together with all behind it.
      const asked = (askedMils.get(organizationId) ?? 0) + mils;
      askedMils.set(organizationId, asked);
      return asked <= (beginsMils.get(organizationId) ?? 0);
    });
    const charged = verdict.kind === "charge";
    const mils = charged ? 0 - verdict.chargedMils : 0;
    write(books, organizationId, { kind: verdict.kind, mils, subject: requestId, reason: verdict.reason ?? null });
    books.decided.set(requestId, { organizationId, ...verdict });
    fresh.add(requestId);
    if (charged && key) books.paid.set(keyOf(organizationId, key.hash), key.fingerprint);
    if (charged && !key) books.undelivered.add(requestId);
  }
  return firsts.flatMap(({ requestId }) => {
    const known = books.decided.get(requestId);
    if (!known) return [];
    const reversed = books.reversed.has(requestId);
    return [
      { requestId, ...known, isNew: fresh.has(requestId), reversed, balance: balanceOf(books, known.organizationId) },
    ];
  });
}

function judge(books: Books, ending: SettlementRequest, covers: (mils: number) => boolean) {
  const refund = (reason: RefundReason) => ({ kind: "refund" as const, chargedMils: 0, reason });
  if (ending.wanted === "refund") return refund(ending.reason);
  const paid = ending.key && books.paid.get(keyOf(ending.organizationId, ending.key.hash));
  if (paid !== undefined) return refund(paid === ending.key?.fingerprint ? "already_paid" : "idempotency_key_reused");
  if (!covers(ending.priceMils)) return refund("out_of_credits");
  return { kind: "charge" as const, chargedMils: ending.priceMils, reason: undefined };
}

/** Without the mils, which are those of charges that were there when the call began: no charge is reversed before it is known. */
export type Reversed = Omit<Reversal, "mils">;

export function reverseInBooks(
  books: Books,
  charges: readonly { organizationId: string; requestId: string }[],
  reason: string,
): Reversed[] {
  const named = new Set(charges.map(({ requestId }) => requestId));
  return [...new Set(charges.map(({ organizationId }) => organizationId))].map((organizationId) => {
    const given = accountOf(books, organizationId).entries.filter(
      ({ kind, subject }) => kind === "charge" && named.has(subject) && books.undelivered.has(subject),
    );
    for (const { mils, subject } of given) {
      write(books, organizationId, { kind: "reversal", mils: 0 - mils, subject, reason });
      books.undelivered.delete(subject);
      books.reversed.add(subject);
    }
    return {
      organizationId,
      requestIds: given.map(({ subject }) => subject),
      balance: balanceOf(books, organizationId),
    };
  });
}

export type Granted = (VersionedBalance & { fresh: boolean }) | "refused";

export function grantInBooks(
  books: Books,
  grant: { organizationId: string; grantId: string; mils: number; reason: string },
): Granted {
  const { organizationId, grantId, mils, reason } = grant;
  const owner = books.grants.get(grantId);
  if (owner !== undefined && owner !== organizationId) return "refused";
  if (owner === undefined) write(books, organizationId, { kind: "grant", mils, subject: grantId, reason });
  books.grants.set(grantId, organizationId);
  return { fresh: owner === undefined, ...balanceOf(books, organizationId) };
}

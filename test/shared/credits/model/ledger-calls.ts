import fc from "fast-check";
import {
  type Decision,
  decideSettlements,
  type SettlementRequest,
  grantCredit,
} from "../../../../shared/credits/ledger.ts";
import { confirmDelivered } from "../../../../shared/credits/deliveries.ts";
import { reverseCharges } from "../../../../shared/credits/deliveries.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import { type Books, decideInBooks, type Granted, grantInBooks, type Reversed, reverseInBooks } from "./books.ts";
import { grantsMax, type Search } from "./cast.ts";
import type { Message } from "./gate.ts";
import { gateOf, type Money, messagesOf, newsOf, organizationAt, searchOf, searchWish } from "./money.ts";

/** One call of Postgres: what it should do to the books and answer, how it is made, and what it then sends to Redis. */
export interface LedgerCall {
  kind: "decide" | "reverse" | "confirm" | "grant";
  told: string;
  organizationIds: string[];
  foresee: (books: Books) => unknown;
  make: (database: Database) => Promise<unknown>;
  /** Takes the answer of the call, which was as foreseen, and keeps what follows from it. */
  follow: (money: Money) => void;
}

export type WantedEnding = SettlementRequest & { ifCharged: "end_hold" | "keep_hold" };

const byRequest = (decisions: Iterable<Decision>) =>
  [...decisions].toSorted((one, other) => (one.requestId < other.requestId ? -1 : 1));
const byOrganization = (reversals: readonly Reversed[]) =>
  reversals
    .map(({ organizationId, requestIds, balance }) => ({ organizationId, requestIds: requestIds.toSorted(), balance }))
    .toSorted((one, other) => (one.organizationId < other.organizationId ? -1 : 1));

export function decideCall(endings: readonly WantedEnding[]): LedgerCall {
  let decisions: Decision[] = [];
  return {
    kind: "decide",
    told: endings.map((ending) => `${ending.wanted} ${ending.requestId}`).join(", "),
    organizationIds: endings.map(({ organizationId }) => organizationId),
    foresee: (books) => {
      decisions = byRequest(decideInBooks(books, endings));
      return decisions;
    },
    make: async (database) => byRequest((await decideSettlements(database, endings)).values()),
    follow: (money) => {
      money.bag.push(...messagesOf(money, decisions, endings));
      // As long as Redis loses nothing, every admitted search can be paid.
      const refused = decisions.find(({ isNew, reason }) => isNew && reason === "out_of_credits");
      if (refused && !money.forgetful.has(refused.organizationId))
        throw new Error(`${refused.requestId} was admitted, and could not pay`);
    },
  };
}

export function reverseCall(charges: readonly { organizationId: string; requestId: string }[]): LedgerCall {
  let reversals: Reversed[] = [];
  return {
    kind: "reverse",
    told: `reverse ${charges.map(({ requestId }) => requestId).join(", ")}`,
    organizationIds: charges.map(({ organizationId }) => organizationId),
    foresee: (books) => {
      reversals = byOrganization(reverseInBooks(books, charges, "undelivered"));
      return reversals;
    },
    make: async (database) => byOrganization(await reverseCharges(database, charges, "undelivered")),
    follow: (money) =>
      money.bag.push(...reversals.map((reversal) => newsOf(reversal.organizationId, reversal.balance))),
  };
}

function confirmCall(requestId: string): LedgerCall {
  let isOpen = false;
  return {
    kind: "confirm",
    told: `confirm ${requestId}`,
    organizationIds: [],
    foresee: (books) => {
      isOpen = books.undelivered.delete(requestId);
    },
    make: (database) => confirmDelivered(database, [requestId]),
    follow: (money) => {
      if (isOpen) money.confirmed.add(requestId);
    },
  };
}

function grantCall(grant: { organizationId: string; grantId: string; mils: number; reason: string }): LedgerCall {
  let granted: Granted = "refused";
  const isTheirs = (error: unknown) => error instanceof Error && error.message.includes("one_entry_per_grant");
  return {
    kind: "grant",
    told: `grant ${grant.grantId}, ${grant.mils} mils to ${grant.organizationId}`,
    organizationIds: [grant.organizationId],
    foresee: (books) => {
      granted = grantInBooks(books, grant);
      return granted;
    },
    make: (database) =>
      grantCredit(database, grant).catch((error: unknown) => {
        if (isTheirs(error)) return "refused";
        throw error;
      }),
    follow: (money) => {
      const message: Message[] = granted === "refused" ? [] : [newsOf(grant.organizationId, granted)];
      money.bag.push(...message);
    },
  };
}

const endingWish = fc.record({
  search: searchWish,
  wanted: fc.constantFrom("charge" as const, "charge" as const, "refund" as const),
  reason: fc.constantFrom("engine_error" as const, "caller_gone" as const, "admission_unknown" as const),
  ifCharged: fc.constantFrom("end_hold" as const, "keep_hold" as const),
});

/** What a command asks of Postgres, before it is known how things stand. */
export const ledgerWish = fc.oneof(
  { weight: 6, arbitrary: fc.record({ decide: fc.array(endingWish, { minLength: 1, maxLength: 4, size: "max" }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      reverse: fc.array(searchWish, { minLength: 1, maxLength: 4, size: "max" }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ confirm: searchWish }) },
  {
    weight: 1,
    arbitrary: fc.record({ grant: fc.nat(grantsMax - 1), to: fc.nat(1), mils: fc.constantFrom(0, 3, 5, 10) }),
  },
);
type LedgerWish = typeof ledgerWish extends fc.Arbitrary<infer Wish> ? Wish : never;

/** The call for a wish; none where nothing of it can happen now. */
export function callOf(money: Money, wished: LedgerWish): LedgerCall | undefined {
  const isUndelivered = ({ requestId }: Search) => money.books.undelivered.has(requestId);
  const isHeld = ({ requestId, organizationId }: Search) => gateOf(money, organizationId).holds.has(requestId);
  if ("confirm" in wished) return confirmCall(searchOf(money, wished.confirm, isUndelivered).requestId);
  if ("reverse" in wished) return reverseCall(wished.reverse.map((wish) => searchOf(money, wish, isUndelivered)));
  if ("grant" in wished) {
    const grantId = money.cast.grantIds[wished.grant] ?? "";
    const organizationId = organizationAt(money, wished.to).id;
    return grantCall({ organizationId, grantId, mils: wished.mils, reason: "top-up" });
  }
  const endings = wished.decide.flatMap(({ search, wanted, reason, ifCharged }): WantedEnding[] => {
    const { requestId, organizationId, key, priceMils } = searchOf(money, search, isHeld);
    const hold = gateOf(money, organizationId).holds.get(requestId);
    if (wanted === "refund") return [{ requestId, organizationId, key, wanted, reason, ifCharged }];
    // No worker runs a search that was not admitted; but Redis may have lost that it was.
    const mayRun = hold || money.books.decided.has(requestId) || money.forgetful.has(organizationId);
    return mayRun ? [{ requestId, organizationId, key, wanted, priceMils: hold?.mils ?? priceMils, ifCharged }] : [];
  });
  return endings.length > 0 ? decideCall(endings) : undefined;
}

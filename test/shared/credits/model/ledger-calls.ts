import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { type Decision, decideSettlements, grantCredit } from "../../../../shared/credits/ledger.ts";
import { confirmDelivered, reverseCharges } from "../../../../shared/credits/deliveries.ts";
import type { HoldEnd } from "../../../../shared/credits/holds.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import {
  type PostgresModel,
  decideInModel,
  type Granted,
  grantInModel,
  type Reversed,
  reverseInModel,
} from "./postgres-model.ts";
import { grantsMax, type Search } from "./participants.ts";
import type { Message } from "./redis-model.ts";
import {
  redisModelOf,
  type Model,
  messagesOf,
  balanceMessage,
  organizationAt,
  searchOf,
  searchChoice,
  type Settlement,
} from "./model.ts";

/** A call of Postgres: its expected effect and result, the real call, and the messages that it sends to Redis. */
export interface LedgerCall {
  kind: "decide" | "reverse" | "confirm" | "grant";
  description: string;
  organizationIds: string[];
  predict: (postgres: PostgresModel) => unknown;
  make: (database: Database) => Promise<unknown>;
  /** Applies the predicted result to the rest of the model: messages, confirmed deliveries. */
  apply: (model: Model) => void;
}

const byRequest = (decisions: Iterable<Decision>) =>
  [...decisions].toSorted((one, other) => (one.requestId < other.requestId ? -1 : 1));
const byOrganization = (reversals: readonly Reversed[]) =>
  reversals
    .map(({ organizationId, requestIds, balance }) => ({ organizationId, requestIds: requestIds.toSorted(), balance }))
    .toSorted((one, other) => (one.organizationId < other.organizationId ? -1 : 1));

export function decideCall(settlements: readonly Settlement[]): LedgerCall {
  let decisions: Decision[] = [];
  return {
    kind: "decide",
    description: settlements.map((settlement) => `${settlement.wanted} ${settlement.requestId}`).join(", "),
    organizationIds: settlements.map(({ organizationId }) => organizationId),
    predict: (postgres) => {
      decisions = byRequest(decideInModel(postgres, settlements));
      return decisions;
    },
    make: async (database) => byRequest((await decideSettlements(database, settlements)).values()),
    apply: (model) => {
      model.messagesInFlight.push(...messagesOf(decisions, settlements));
      // Unless Redis lost data, an admitted search is covered by the balance.
      const refused = decisions.find(({ isNew, reason }) => isNew && reason === "out_of_credits");
      if (refused && !model.redisLostData.has(refused.organizationId))
        throw new Error(`${refused.requestId} was admitted and then refused as out of credits`);
    },
  };
}

export function reverseCall(
  charges: readonly { organizationId: string; requestId: string }[],
  reason: "undelivered" | "caller_gone" = "undelivered",
): LedgerCall {
  let reversals: Reversed[] = [];
  return {
    kind: "reverse",
    description: `reverse ${charges.map(({ requestId }) => requestId).join(", ")}`,
    organizationIds: charges.map(({ organizationId }) => organizationId),
    predict: (postgres) => {
      reversals = byOrganization(reverseInModel(postgres, charges, reason));
      return reversals;
    },
    make: async (database) => byOrganization(await reverseCharges(database, charges, reason)),
    apply: (model) =>
      model.messagesInFlight.push(
        ...reversals.map(({ organizationId, balance, requestIds }) => {
          const ends = requestIds.map((requestId): HoldEnd => ({ requestId, abandoned: "ended" }));
          return { ...balanceMessage(organizationId, balance), ends: reason === "caller_gone" ? ends : [] };
        }),
      ),
  };
}

function confirmCall(requestId: string): LedgerCall {
  let isOpen = false;
  return {
    kind: "confirm",
    description: `confirm ${requestId}`,
    organizationIds: [],
    predict: (postgres) => {
      isOpen = postgres.undelivered.delete(requestId);
    },
    make: (database) => confirmDelivered(database, [requestId]),
    apply: (model) => {
      if (isOpen) model.confirmed.add(requestId);
    },
  };
}

function grantCall(grant: { organizationId: string; grantId: string; mils: number; reason: string }): LedgerCall {
  let granted: Granted = "refused";
  const isOfAnotherOrganization = (error: unknown) =>
    error instanceof Error && error.message.includes("one_entry_per_grant");
  return {
    kind: "grant",
    description: `grant ${grant.grantId}, ${grant.mils} mils to ${grant.organizationId}`,
    organizationIds: [grant.organizationId],
    predict: (postgres) => {
      granted = grantInModel(postgres, grant);
      return granted;
    },
    make: (database) =>
      grantCredit(database, grant).catch((error: unknown) => {
        if (isOfAnotherOrganization(error)) return "refused";
        throw error;
      }),
    apply: (model) => {
      const message: Message[] = granted === "refused" ? [] : [balanceMessage(grant.organizationId, granted)];
      model.messagesInFlight.push(...message);
    },
  };
}

const settlementChoice = fc.record({
  search: searchChoice,
  wanted: fc.constantFrom("charge" as const, "charge" as const, "refund" as const),
  reason: fc.constantFrom("engine_error" as const, "caller_gone" as const, "admission_unknown" as const),
  ifCharged: fc.constantFrom("end_hold" as const, "keep_hold" as const),
  isRunning: fc.boolean(),
});

/** A random call of Postgres. The state at that time decides which searches it concerns. */
export const ledgerChoice = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ decide: fc.array(settlementChoice, { minLength: 1, maxLength: 4, size: "max" }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      reverse: fc.array(searchChoice, { minLength: 1, maxLength: 4, size: "max" }),
      why: fc.constantFrom("undelivered" as const, "caller_gone" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ confirm: searchChoice }) },
  {
    weight: 1,
    arbitrary: fc.record({ grant: fc.nat(grantsMax - 1), to: fc.nat(1), mils: fc.constantFrom(0, 3, 5, 10) }),
  },
);
type LedgerChoice = typeof ledgerChoice extends fc.Arbitrary<infer Wish> ? Wish : never;

/** The call for a choice; undefined if none of it is possible in the current state. */
export function callOf(model: Model, choice: LedgerChoice): LedgerCall | undefined {
  const isUndelivered = ({ requestId }: Search) => model.postgres.undelivered.has(requestId);
  const isHeld = ({ requestId, organizationId }: Search) => redisModelOf(model, organizationId).holds.has(requestId);
  if ("confirm" in choice) return confirmCall(searchOf(model, choice.confirm, isUndelivered).requestId);
  if ("reverse" in choice) {
    const charges = choice.reverse.map((search) => searchOf(model, search, isUndelivered));
    return reverseCall(charges, choice.why);
  }
  if ("grant" in choice) {
    const grantId = model.participants.grantIds[choice.grant] ?? "";
    const organizationId = organizationAt(model, choice.to).id;
    return grantCall({ organizationId, grantId, mils: choice.mils, reason: "top-up" });
  }
  const settlements = choice.decide.flatMap(({ search, wanted, reason, ifCharged, isRunning }): Settlement[] => {
    const { requestId, organizationId, key, priceMils } = searchOf(model, search, isHeld);
    const hold = redisModelOf(model, organizationId).holds.get(requestId);
    // Under a key nothing is abandoned: the search runs on.
    const isAbandoned = isRunning && !key;
    if (wanted === "refund") return [{ requestId, organizationId, key, wanted, reason, ifCharged, isAbandoned }];
    // A worker runs only admitted searches, but Redis may have lost the hold.
    const mayRun = hold || model.postgres.decided.has(requestId) || model.redisLostData.has(organizationId);
    model.answers += 1;
    const answer = key && gzipSync(`answer ${model.answers} of ${requestId}`);
    return mayRun
      ? [{ requestId, organizationId, key, wanted, answer, priceMils: hold?.mils ?? priceMils, ifCharged }]
      : [];
  });
  return settlements.length > 0 ? decideCall(settlements) : undefined;
}

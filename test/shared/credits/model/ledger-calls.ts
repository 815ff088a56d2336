import { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import type { Decision } from "../../../../shared/credits/ledger.ts";
import { confirmDelivered, reverseCharges } from "../../../../shared/credits/deliveries.ts";
import type { HoldEnd } from "../../../../shared/credits/holds.ts";
import { limitBehind } from "../../../../shared/credits/limits.ts";
import type { Limits } from "../../../../shared/queue/search-job.ts";
import { changeLimits } from "../../../../api/organizations/limits.ts";
import { decidePatiently } from "../decide-patiently.ts";
import { correctCall, grantCall } from "./credit-calls.ts";
import type { LedgerCall } from "./ledger-call.ts";
import { decideInModel, type Reversed, reverseInModel } from "./postgres-model.ts";
import { correctionsMax, grantsMax, type Search } from "./participants.ts";
import {
  callsOf,
  redisModelOf,
  type Model,
  messagesOf,
  noteLimits,
  balanceMessage,
  organizationAt,
  searchOf,
  searchChoice,
  type Settlement,
} from "./model.ts";
import { chargeOf } from "../../../harness/fixtures/charge-of.ts";

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
    make: async (database) => byRequest((await decidePatiently(database, settlements)).values()),
    apply: (model) => {
      model.messagesInFlight.push(...messagesOf(decisions, settlements));
      // Unless Redis lost data, an admitted search is covered by the balance that no correction took away meanwhile, and by
      // the limits that it was admitted under.
      for (const { requestId, organizationId, isNew, reason } of decisions) {
        const isLimit = limitBehind(reason) !== undefined;
        const mayLag = isLimit ? model.limitsLag : model.creditTaken;
        const isCovered = !model.redisLostData.has(organizationId) && !mayLag.has(organizationId);
        if (isNew && isCovered && (isLimit || reason === "out_of_credits"))
          throw new Error(`${requestId} was admitted and then refused: ${reason}`);
      }
    },
  };
}

export function reverseCall(
  charges: readonly { organizationId: string; requestId: string }[],
  reason: "undelivered" | "caller_disconnected" = "undelivered",
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
          const ends = requestIds.map((requestId): HoldEnd => ({ requestId, calls: callsOf(requestId) }));
          return { ...balanceMessage(organizationId, balance), ends: reason === "caller_disconnected" ? ends : [] };
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

/** Sets or removes both limits of an organization or a token. */
function limitCall(organizationId: string, ownerId: string, limits: Limits): LedgerCall {
  const owner = ownerId === organizationId ? "organization" : "token";
  const { dayMils = null, monthMils = null } = limits;
  return {
    kind: "limit",
    description: `limit ${ownerId} to ${dayMils} a day, ${monthMils} a month`,
    organizationIds: [organizationId],
    predict: (postgres) => {
      postgres.limits.set(ownerId, [...(postgres.limits.get(ownerId) ?? []), limits]);
    },
    make: async (database) => {
      if (!(await changeLimits(database, owner, ownerId, { dayMils, monthMils }))) throw new Error(`no ${ownerId}`);
    },
    apply: (model) => noteLimits(model, organizationId, false),
  };
}

const limitMils = fc.constantFrom(undefined, undefined, 5, 10, 12, 25);
const settlementChoice = fc.record({
  search: searchChoice,
  wanted: fc.constantFrom("charge" as const, "charge" as const, "refund" as const),
  reason: fc.constantFrom(
    "provider_unavailable" as const,
    "caller_disconnected" as const,
    "admission_unknown" as const,
  ),
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
      why: fc.constantFrom("undelivered" as const, "caller_disconnected" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ confirm: searchChoice }) },
  {
    weight: 1,
    arbitrary: fc.record({ grant: fc.nat(grantsMax - 1), to: fc.nat(1), mils: fc.constantFrom(0, 3, 5, 10) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      correct: fc.nat(correctionsMax - 1),
      to: fc.nat(1),
      mils: fc.constantFrom(-20, -6, -5, -3, 4, 10),
    }),
  },
  { weight: 2, arbitrary: fc.record({ limit: fc.nat(2), of: fc.nat(1), dayMils: limitMils, monthMils: limitMils }) },
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
  if ("correct" in choice) {
    const grantId = model.participants.correctionIds[choice.correct] ?? "";
    const organizationId = organizationAt(model, choice.to).id;
    return correctCall({ organizationId, grantId, mils: choice.mils, reason: "mistake" });
  }
  if ("limit" in choice) {
    const { id, tokenIds } = organizationAt(model, choice.of);
    const { dayMils, monthMils } = choice;
    const limits = { ...(dayMils !== undefined && { dayMils }), ...(monthMils !== undefined && { monthMils }) };
    return limitCall(id, [id, ...tokenIds][choice.limit] ?? id, limits);
  }
  const settlements = choice.decide.flatMap(({ search, wanted, reason, ifCharged, isRunning }): Settlement[] => {
    const { requestId, organizationId, tokenId, key, priceMils } = searchOf(model, search, isHeld);
    const common = { requestId, organizationId, tokenId, key, ifCharged };
    const hold = redisModelOf(model, organizationId).holds.get(requestId);
    if (wanted === "refund") return [{ ...common, wanted, reason, callerDisconnected: isRunning }];
    // A worker runs only admitted searches, but Redis may have lost the hold.
    const mayRun = hold || model.postgres.decided.has(requestId) || model.redisLostData.has(organizationId);
    model.answers += 1;
    const answer = key && zstdCompressSync(`answer ${model.answers} of ${requestId}`);
    const charge = chargeOf(organizationId, { ...common, answer, priceMils: hold?.mils ?? priceMils });
    return mayRun ? [{ ...charge, ifCharged }] : [];
  });
  return settlements.length > 0 ? decideCall(settlements) : undefined;
}

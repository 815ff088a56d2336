import fc from "fast-check";
import { type FaultName, faultNames } from "./faults.ts";
import { organizationsMax } from "./cluster.ts";

/** A planned fault: which, where, when and for how long. */
export interface PlannedFault {
  name: FaultName;
  /** Milliseconds after the previous one. */
  afterMs: number;
  lastsMs: number;
  /** Which of the two processes of a kind it affects. */
  process: 0 | 1;
  /** From 0 to 1, if the fault has degrees. */
  strength: number;
  /** If a connection is cut around a request: whether the request was executed. */
  landed: boolean;
}

/**
 * How a caller searches. `keyed` retries under a key, `doubled` sends several copies at once under one key, `cancelling` cancels
 * over MCP, and `pipelining` sends several searches on one connection before it reads.
 */
export type Manner = "once" | "keyed" | "doubled" | "hanging_up" | "hanging_up_keyed" | "cancelling" | "pipelining";

/** A search of the plan. */
export interface PlannedSearch {
  manner: Manner;
  organization: number;
  /** Which token of the organization, modulo their number. */
  token: number;
  api: 0 | 1;
  /** The fields of the request besides the keyword. */
  fields: object;
  /** How many requests are sent at once, if doubled or pipelined. */
  copies: number;
  /** When the caller disconnects or cancels. */
  disconnectAfterMs: number;
  /** How long the provider takes. */
  providerMs: number;
}

const faultsMax = 1_000;
const backgroundMax = 10_000;

/** What callers and operators do besides searching. */
export interface PlannedRequest {
  kind:
    | "read usage"
    | "verify the ledger"
    | "top up"
    | "correct the balance"
    | "change a limit"
    | "another engine"
    | "a bad request";
  organization: number;
  /** Which token of the organization, modulo their number. */
  token: number;
  /** The new limit, if one changes, in searches; null removes it. */
  limit: { owner: "organization" | "token"; period: "dayMils" | "monthMils"; searches: number | null };
  /** The amount of a correction in searches, and how many copies are sent at once under one id. */
  correction: { searches: number; copies: number };
  api: 0 | 1;
  afterMs: number;
}

const firstOrSecond = fc.constantFrom(0 as const, 1 as const); // `as const`, or the type would be number.

const plannedFault = (names: readonly FaultName[]): fc.Arbitrary<PlannedFault> =>
  fc.record({
    name: fc.constantFrom(...names),
    afterMs: fc.integer({ min: 500, max: 3_500 }), // Every two seconds.
    lastsMs: fc.oneof(
      { weight: 2, arbitrary: fc.integer({ min: 200, max: 2_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: 2_000, max: 8_000 }) },
    ),
    process: firstOrSecond,
    strength: fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100),
    landed: fc.boolean(),
  });

// Token 0 has all scopes, 1 only `search`, 2 only `usage`.
const token = fc.constantFrom(0, 0, 0, 1, 1, 2);
const weighted = (weight: number, manner: Manner) => ({ weight, arbitrary: fc.constant(manner) });

const plannedSearch: fc.Arbitrary<PlannedSearch> = fc.record({
  manner: fc.oneof(
    weighted(28, "once"),
    weighted(37, "keyed"),
    weighted(10, "doubled"),
    weighted(10, "hanging_up"),
    weighted(7, "hanging_up_keyed"),
    weighted(5, "cancelling"),
    weighted(3, "pipelining"),
  ),
  organization: fc.integer({ min: 0, max: organizationsMax - 1 }),
  token,
  api: firstOrSecond,
  fields: fc.constantFrom<object[]>(
    { depth: 10 },
    { depth: 100 }, // Ten results a page.
    { depth: 100, format: "compact" },
    { types: ["organic", "people_also_ask"] },
  ),
  copies: fc.integer({ min: 2, max: 5 }),
  disconnectAfterMs: fc.integer({ min: 5, max: 1_500 }),
  providerMs: fc.oneof(
    { weight: 1, arbitrary: fc.integer({ min: 20, max: 500 }) },
    { weight: 2, arbitrary: fc.integer({ min: 500, max: 4_000 }) },
  ),
});

const plannedRequest: fc.Arbitrary<PlannedRequest> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant("read usage" as const) }, // `as const`, or the type would be string.
    { weight: 1, arbitrary: fc.constant("verify the ledger" as const) },
    { weight: 4, arbitrary: fc.constant("top up" as const) },
    { weight: 4, arbitrary: fc.constant("correct the balance" as const) },
    { weight: 4, arbitrary: fc.constant("change a limit" as const) },
    { weight: 2, arbitrary: fc.constant("another engine" as const) },
    { weight: 1, arbitrary: fc.constant("a bad request" as const) },
  ),
  organization: fc.integer({ min: 0, max: organizationsMax - 1 }),
  token,
  limit: fc.record({
    owner: fc.constantFrom("organization" as const, "token" as const),
    period: fc.constantFrom("dayMils" as const, "monthMils" as const),
    searches: fc.option(fc.integer({ min: 0, max: 40 })),
  }),
  correction: fc.record({
    searches: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 15 }) },
      { weight: 4, arbitrary: fc.integer({ min: -30, max: -1 }) },
      { weight: 1, arbitrary: fc.constant(-1_000_000) }, // More than any organization has.
    ),
    copies: fc.integer({ min: 1, max: 3 }),
  }),
  api: firstOrSecond,
  afterMs: fc.integer({ min: 10, max: 200 }),
});

export interface Plan {
  searches: PlannedSearch[];
  faults: PlannedFault[];
  background: PlannedRequest[];
}

/** The plan of a seed. The same seed and length give the same searches and faults, in the same order. */
export function planOf(seed: number, length: number, only?: FaultName): Plan {
  const sampled = <T>(arbitrary: fc.Arbitrary<T>, numRuns: number) =>
    fc.sample(fc.noBias(arbitrary), { seed, numRuns });
  return {
    searches: sampled(plannedSearch, length),
    faults: sampled(plannedFault(only ? [only] : faultNames), faultsMax),
    background: sampled(plannedRequest, backgroundMax),
  };
}

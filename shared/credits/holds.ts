import type { Redis } from "ioredis";
import { z } from "zod";
import { protocolTimes } from "../protocol-times.ts";
import { Script } from "../redis/script.ts";
import type { IdempotencyKey, PayerLimits } from "../queue/search-job.ts";
import type { Plan } from "./plans.ts";
import { holdIndexKey, keysOf, openOrganizationsKey, suspectCopiesKey } from "./redis-keys.ts";
import { callsArgument, type EndedCalls } from "./unpaid-calls.ts";
import type { TokenSpending, VersionedBalance } from "./ledger.ts";

/**
 * Holds: mils set aside for searches that run. For each organization Redis keeps a copy of the balance in Postgres with
 * its version, the open holds with their sum, the rate window, and a record for each Idempotency-Key. What can be spent
 * is balance − held. Redis never computes a balance of its own. An index has the open holds of all
 * organizations, and a set the organizations that have any: shedding counts them.
 *
 *   open      entered by admit.lua, if the balance, the concurrency limit and the rate window allow the search.
 *     ├─▶ charged   left by settle.lua, after Postgres inserted the charge: the worker had an answer in time.
 *     └─▶ refunded  left by settle.lua, after Postgres inserted a refund: the worker's search failed; the API's deadline
 *                   passed, its caller disconnected, or its admission or enqueueing has an unknown outcome; or the
 *                   sweeper found the hold open 2 s after its deadline.
 *
 * The process that ends a hold first inserts the decision in Postgres. If that process dies before settle.lua, the sweeper finds the
 * decision and drops the hold. A flushed Redis has lost its holds; Postgres decides the searches all the same.
 */

const here = (file: string) => new URL(file, import.meta.url);
const usageScript = new Script("usage", here("limits.lua"), here("usage.lua"));
const settleScript = Script.endingWork(
  "settle",
  here("deadline-entry.lua"),
  here("unpaid-calls.lua"),
  here("token-hold.lua"),
  here("note-suspect.lua"),
  here("settle.lua"),
);

/** The end of a hold, and how it ends the record of its Idempotency-Key. */
export interface HoldEnd {
  requestId: string;
  key?: IdempotencyKey | undefined;
  /** The answer is in Postgres; or the failure for the repeats that wait; or neither, which frees the key. */
  answered?: boolean | undefined;
  failure?: string | undefined;
  /** A search whose caller disconnected or cancelled while a worker may have it: frees its mils, keeps its concurrency slot. */
  isLeft?: boolean | undefined;
  /** Its provider calls, if the search was not charged because of its caller, or shared its answer with others. */
  calls?: EndedCalls | undefined;
}

/** What goes with the end of holds. */
interface SettledWith {
  /** What limited tokens spent. */
  tokens?: readonly TokenSpending[];
  /** The balance before the entries of these searches. Redis should not have had a newer one by then. */
  before?: VersionedBalance | undefined;
}

/**
 * Ends holds of one organization and stores its newest balance, and what limited tokens spent, in one step. Running it again has
 * no further effect. It also runs while Redis is out of memory.
 * @returns how many provider calls were counted as unpaid.
 */
export async function settleHolds(
  redis: Redis,
  organizationId: string,
  balance: VersionedBalance,
  ends: readonly HoldEnd[],
  { tokens = [], before }: SettledWith = {},
): Promise<number> {
  const { balance: balanceKey, holds, tokens: tokensKey, record } = keysOf(organizationId);
  const named: string[] = [];
  const args = ends.flatMap((end) => {
    const recordPlace = end.key ? named.push(record(end.key.hash)) : 0;
    const calls = end.calls ? callsArgument(organizationId, end.calls, named) : "";
    return [end.requestId, recordPlace, recordOutcome(end), end.failure ?? "", calls];
  });
  const { balanceMils, version, spending = "", entryId = "" } = balance;
  const spent = tokens.flatMap((token) => [token.tokenId, `${token.version}:${token.spending}`]);
  const counted = await settleScript.run(
    redis,
    [balanceKey, holds, holdIndexKey, tokensKey, openOrganizationsKey, suspectCopiesKey, ...named],
    [
      balanceMils,
      version,
      protocolTimes.idempotencyEndMs,
      spending,
      tokens.length,
      entryId,
      before?.version ?? "",
      before?.balanceMils ?? "",
      before?.entryId ?? "",
      ...spent,
      ...args,
    ],
  );
  return Number(counted);
}

function recordOutcome({ key, answered, failure, isLeft }: HoldEnd): string {
  if (isLeft) return "left";
  if (key) return answered ? "answered" : failure === undefined ? "freed" : "failed";
  return "none";
}

/** The first request under a key: it runs, was answered (look in Postgres), has failed, or left no record (`gone`). */
export type IdempotencyState =
  | { outcome: "running" | "answered"; requestId: string }
  | { outcome: "failed"; failure: string }
  | { outcome: "gone" };

export async function readIdempotencyState(
  redis: Redis,
  organizationId: string,
  keyHash: string,
): Promise<IdempotencyState> {
  const key = keysOf(organizationId).record(keyHash);
  const [requestId, failure, answered] = await redis.hmget(key, "request", "failure", "answered");
  if (!requestId) return { outcome: "gone" };
  if (failure) return { outcome: "failed", failure };
  return { outcome: answered === null ? "running" : "answered", requestId };
}

// A reply has null where there is no limit. It reads as 0.
const count = z.coerce.number();
const window = [count, count] as const;
const usageReply = z.union([
  z.tuple([z.literal("read"), ...window, count, count, count, count, count, count, count, count, count, count]),
  z.tuple([z.enum(["limited", "balance_missing"]), ...window, count]),
]);

/** An organization's credit in Redis at one moment. Available is balance − held, and never below 0. */
export interface CreditState extends VersionedBalance {
  heldMils: number;
  searchesInFlight: number;
}

/** Reads what an organization can spend, for one request of its rate window; for none if `tokenTaken`. */
export async function readUsage(
  redis: Redis,
  { organizationId, plan, limits }: { organizationId: string; plan: Plan; limits?: PayerLimits | undefined },
  tokenTaken = false,
) {
  const keys = keysOf(organizationId);
  const limited = [limits?.organization ? "1" : "", limits?.token?.tokenId ?? ""];
  const reply = await usageScript.run(
    redis,
    [keys.balance, keys.holds, keys.window, keys.tokens],
    [plan.windowLimit, plan.windowSeconds * 1_000, tokenTaken ? "1" : "", ...limited],
  );
  const read = usageReply.parse(reply);
  const [outcome, used, leftMs] = read;
  const state = { outcome, window: { used, leftMs } };
  if (read[0] !== "read")
    return { ...state, availableMils: 0, version: read[3], creditState: undefined, spent: undefined };
  const [, , , availableMils, balanceMils, version, heldMils, searchesInFlight, ...amounts] = read;
  const [day, month, tokenDay, tokenMonth, tokenHeldMils] = amounts;
  const creditState: CreditState = { balanceMils, version, heldMils, searchesInFlight };
  const spent = {
    organization: { day, month, heldMils },
    token: { day: tokenDay, month: tokenMonth, heldMils: tokenHeldMils },
  };
  return { ...state, availableMils, version, creditState, spent };
}

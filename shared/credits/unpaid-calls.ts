import type { Redis } from "ioredis";
import type { Decision } from "./ledger.ts";
import type { Plan } from "./plans.ts";
import type { PayableCalls } from "../queue/replies.ts";
import { keysOf } from "./redis-keys.ts";

/**
 * The budget of unpaid provider calls, a term of the plan: how many calls an organization's callers may have made in an hour
 * for searches that ended without a charge because of the caller. A call counts as unpaid if it was answered, or had too little
 * time because of the caller, and its search
 *
 *   - had no Idempotency-Key, and its caller disconnected or cancelled, or did not take the answer;
 *   - had one, and a person cancelled it in the playground;
 *   - waited for the first request under its key, and had too little time left for its own calls;
 *   - was found at its end to be another query than the one that its key had paid for.
 *
 * An answer that was charged and not taken counts as one call if its search made none: its charge and the reversal stay in the
 * ledger (api/search/delivery.ts).
 *
 * A call does not count if another search paid for the answer, if the provider failed or took its whole time, or if the call
 * repeated one that had failed. Calls are counted by settle.lua, together with the end of their search, and admit.lua refuses
 * searches beyond the budget. What is in flight then is counted later: the budget can be exceeded by the calls in flight.
 * Searches with a key are refused only for what keyed searches left unpaid. One token uses at most half of the budget. What
 * it exceeds that half by refuses no other token, up to a second budget.
 */

const hourMs = 3_600_000;

/** The keys of an organization's levels: its own, and that of one token. */
export function unpaidLevels(organizationId: string, tokenId: string, isKeyed: boolean): [string, string] {
  const { unpaid, unpaidKeyed } = keysOf(organizationId);
  const level = isKeyed ? unpaidKeyed : unpaid;
  return [level, `${level}:${tokenId}`];
}

/** The calls of a search that has ended: how it ended, and whose budget they count against. */
export interface EndedCalls extends PayableCalls {
  /** `paid`: of an answer that several searches shared. */
  kind: "unpaid" | "paid";
  tokenId: string;
  isKeyed: boolean;
  callsPerHour: number;
}

/** What decides whether the calls of a search count. */
export interface SearchCalls extends Omit<EndedCalls, "kind"> {
  hadLittleTime: boolean;
}

/** How the calls of a decided search count; undefined if they do not. */
export function endedCalls(search: SearchCalls | undefined, decision: Decision): EndedCalls | undefined {
  if (!search) return undefined;
  const { hadLittleTime, ...calls } = search;
  if (decision.kind === "charge") return calls.calls === 0 ? { ...calls, kind: "paid" } : undefined;
  const { reason } = decision;
  const isByCaller = reason === "caller_disconnected" || reason === "idempotency_key_reused";
  return isByCaller || (hadLittleTime && reason === "engine_timeout") ? { ...calls, kind: "unpaid" } : undefined;
}

/** The calls of a search as settle.lua gets them. Appends the keys that they need to `named`, which it names by place. */
export function callsArgument(organizationId: string, ended: EndedCalls, named: string[]): string {
  const { kind, tokenId, isKeyed, calls, callsPerHour } = ended;
  const place = named.push(`flight:${ended.flight}`);
  // What keyed searches leave unpaid counts against both budgets.
  const levels = [false, ...(isKeyed ? [true] : [])].flatMap((keyed) => unpaidLevels(organizationId, tokenId, keyed));
  named.push(...levels);
  return [kind, place, levels.length, calls, Math.ceil(hourMs / callsPerHour)].join(":");
}

/** Reads how many unpaid calls count against an organization's budget now. @throws if Redis does not answer. */
export async function readUnpaidCalls(
  redis: Redis,
  { organizationId, plan }: { organizationId: string; plan: Pick<Plan, "unpaidCalls"> },
): Promise<number> {
  const levelMs = await redis.pttl(keysOf(organizationId).unpaid);
  return Math.ceil((Math.max(levelMs, 0) * plan.unpaidCalls) / hourMs);
}

/** Whether the caller of a search that a worker takes over has disconnected. @throws if Redis does not answer. */
export async function isLeft(redis: Redis, organizationId: string, requestId: string): Promise<boolean> {
  return (await redis.hget(keysOf(organizationId).holds, requestId))?.startsWith("00:") ?? false;
}

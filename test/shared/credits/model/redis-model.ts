import type { HoldEnd } from "../../../../shared/credits/holds.ts";
import type { PayerLimits } from "../../../../shared/queue/search-job.ts";
import type { TokenSpending, VersionedBalance } from "../../../../shared/credits/ledger.ts";
import { milsIn } from "./limits-model.ts";
import type { Search } from "./participants.ts";

/** The expected content of Redis for one organization, and the expected effect of each script. */
export interface RedisModel {
  balance: VersionedBalance | undefined;
  holds: Map<string, { mils: number; keyHash: string; late: boolean }>;
  /** What limited tokens spent. */
  tokens: Map<string, TokenSpending>;
  /** What searches hold against the limits of their tokens. */
  tokenHolds: Map<string, { mils: number; tokenId: string }>;
  used: number;
  records: Map<string, KeyRecord>;
}

interface KeyRecord {
  requestId: string;
  fingerprint: string;
  answered?: true;
  failure?: string;
}

/** What Redis gets after a decision. It can arrive now, late, twice, in another order, or never. */
export interface Message {
  organizationId: string;
  balance: VersionedBalance;
  tokens: TokenSpending[];
  ends: HoldEnd[];
  /** Searches that this balance has decided, whose holds give back their mils once Redis has it. */
  frees: string[];
}

export const emptyRedis = (): RedisModel => ({
  balance: undefined,
  holds: new Map(),
  tokens: new Map(),
  tokenHolds: new Map(),
  used: 0,
  records: new Map(),
});
export const heldMilsOf = ({ holds }: RedisModel) => [...holds.values()].reduce((sum, { mils }) => sum + mils, 0);
export const tokenHeldMilsOf = ({ tokenHolds }: RedisModel, of: string) =>
  [...tokenHolds.values()].reduce((sum, { mils, tokenId }) => (tokenId === of ? sum + mils : sum), 0);

/** Whether Redis knows what counts against these limits. */
export const knowsSpending = ({ balance, tokens }: RedisModel, { organization, token }: PayerLimits = {}): boolean =>
  balance !== undefined && (!organization || balance.spending !== undefined) && (!token || tokens.has(token.tokenId));

/** The refusal of a search that could exceed a limit. */
function overLimit(redis: RedisModel, limits: PayerLimits | undefined, priceMils: number): object | undefined {
  const version = redis.balance?.version;
  for (const scope of ["organization", "token"] as const) {
    const own = limits?.[scope];
    if (!own) continue;
    const tokenId = limits.token?.tokenId ?? "";
    const spending = scope === "token" ? redis.tokens.get(tokenId)?.spending : redis.balance?.spending;
    if (spending === undefined) return { outcome: "balance_missing", version };
    const heldMils = scope === "token" ? tokenHeldMilsOf(redis, tokenId) : heldMilsOf(redis);
    const spentMils = milsIn(spending);
    const exceeds = (limit = Number.POSITIVE_INFINITY) => spentMils + heldMils + priceMils > limit;
    const period = exceeds(own.monthMils) ? "month" : exceeds(own.dayMils) ? "day" : undefined;
    if (period) return { outcome: "spending_limit", limit: { scope, period }, spentMils, heldMils, version };
  }
  return undefined;
}

interface AdmissionChoice {
  shed: boolean;
  late: boolean;
  hasStoredAnswer: boolean;
  limits: PayerLimits | undefined;
}

/** The expected reply of admit.lua. The count of the window is in {@link RedisModel.used}. */
export function admitInModel(
  redis: RedisModel,
  { requestId, plan, key, priceMils }: Search,
  { shed, late, hasStoredAnswer, limits }: AdmissionChoice,
): object {
  if (hasStoredAnswer) return { outcome: "stored_answer" };
  const record = key && redis.records.get(key.hash);
  if (record && !record.failure && record.requestId !== requestId) {
    if (record.fingerprint !== key.fingerprint) return { outcome: "key_reused" };
    if (record.answered) return { outcome: "completed" };
    if (redis.used >= plan.windowLimit) return { outcome: "limited" };
    redis.used += 1;
    return { outcome: "waiting" };
  }
  if (shed) return { outcome: "shed" };
  if (!redis.balance) return { outcome: "balance_missing", version: 0 };
  const heldMils = heldMilsOf(redis);
  const availableMils = redis.balance.balanceMils - heldMils;
  if (priceMils > 0 && availableMils < priceMils)
    return {
      outcome: "insufficient_credit",
      availableMils: Math.max(0, availableMils),
      heldMils,
      version: redis.balance.version,
    };
  const over = priceMils > 0 ? overLimit(redis, limits, priceMils) : undefined;
  if (over) return over;
  if (redis.holds.size >= plan.concurrency) return { outcome: "concurrency_limited" };
  if (redis.used >= plan.windowLimit) return { outcome: "limited" };
  redis.used += 1;
  const token = priceMils > 0 ? limits?.token : undefined;
  if (token && !redis.holds.has(requestId))
    redis.tokenHolds.set(requestId, { mils: priceMils, tokenId: token.tokenId });
  if (!redis.holds.has(requestId)) redis.holds.set(requestId, { mils: priceMils, keyHash: key?.hash ?? "", late });
  if (key) redis.records.set(key.hash, { requestId, fingerprint: key.fingerprint });
  return { outcome: "held", remainingMils: Math.max(0, availableMils - priceMils), openSearches: redis.holds.size };
}

/** The expected effect of settle.lua. */
export function settleInModel(redis: RedisModel, { balance, tokens, ends }: Message): void {
  const versionsAhead = balance.version - (redis.balance?.version ?? -1);
  if (versionsAhead > 0) redis.balance = balance;
  else if (versionsAhead === 0 && redis.balance && balance.spending !== undefined)
    redis.balance = { ...redis.balance, spending: balance.spending };
  for (const token of tokens)
    if (token.version >= (redis.tokens.get(token.tokenId)?.version ?? 0)) redis.tokens.set(token.tokenId, token);
  for (const { requestId, key, answered, failure, isLeft } of ends) {
    const hold = redis.holds.get(requestId);
    if (hold) redis.tokenHolds.delete(requestId);
    if (!isLeft) redis.holds.delete(requestId);
    else if (hold) hold.mils = 0;
    const record = key && redis.records.get(key.hash);
    if (!key || record?.requestId !== requestId) continue;
    if (answered) record.answered = true;
    else if (failure === undefined) redis.records.delete(key.hash);
    else record.failure = failure;
  }
}

/** The expected effect of free-decided.lua. */
export function freeInModel(redis: RedisModel, { balance, frees }: Message): void {
  if ((redis.balance?.version ?? -1) < balance.version) return;
  for (const requestId of frees) {
    const hold = redis.holds.get(requestId);
    if (hold) hold.mils = 0;
    const tokenId = redis.tokenHolds.get(requestId)?.tokenId ?? "";
    if ((redis.tokens.get(tokenId)?.version ?? -1) >= balance.version) redis.tokenHolds.delete(requestId);
  }
}

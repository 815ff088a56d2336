import type { HoldEnd } from "../../../../shared/credits/holds.ts";
import type { VersionedBalance } from "../../../../shared/credits/versioned-balance.ts";
import type { Search } from "./participants.ts";

/** The expected content of Redis for one organization, and the expected effect of each script. */
export interface RedisModel {
  balance: VersionedBalance | undefined;
  holds: Map<string, { mils: number; keyHash: string; late: boolean }>;
  used: number;
  records: Map<string, KeyRecord>;
  /** Searches that count as abandoned. None is old enough to be forgotten in a run. */
  abandoned: Set<string>;
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
  ends: HoldEnd[];
}

export const emptyRedis = (): RedisModel => ({
  balance: undefined,
  holds: new Map(),
  used: 0,
  records: new Map(),
  abandoned: new Set(),
});
export const heldMilsOf = ({ holds }: RedisModel) => [...holds.values()].reduce((sum, { mils }) => sum + mils, 0);

/** The expected reply of admit.lua. The count of the window is in {@link RedisModel.used}. */
export function admitInModel(
  redis: RedisModel,
  { requestId, plan, key }: Search,
  { priceMils, closed, late, remembered }: { priceMils: number; closed: boolean; late: boolean; remembered: boolean },
): object {
  if (remembered) return { outcome: "remembered" };
  const record = key && redis.records.get(key.hash);
  if (record && !record.failure && record.requestId !== requestId) {
    if (record.fingerprint !== key.fingerprint) return { outcome: "key_reused" };
    if (record.answered) return { outcome: "answered" };
    if (redis.used >= plan.windowLimit) return { outcome: "limited" };
    redis.used += 1;
    return { outcome: "waiting", requestId: record.requestId };
  }
  if (closed) return { outcome: "closed" };
  if (!redis.balance) return { outcome: "cold" };
  const heldMils = heldMilsOf(redis);
  const availableMils = redis.balance.balanceMils - heldMils;
  if (priceMils > 0 && availableMils < priceMils)
    return { outcome: "short", availableMils: Math.max(0, availableMils), heldMils, version: redis.balance.version };
  if (redis.holds.size >= plan.concurrency) return { outcome: "crowded" };
  if (!key && redis.abandoned.size >= plan.concurrency) return { outcome: "abandoned" };
  if (redis.used >= plan.windowLimit) return { outcome: "limited" };
  redis.used += 1;
  if (!redis.holds.has(requestId)) redis.holds.set(requestId, { mils: priceMils, keyHash: key?.hash ?? "", late });
  if (key) redis.records.set(key.hash, { requestId, fingerprint: key.fingerprint });
  return { outcome: "held", remainingMils: Math.max(0, availableMils - priceMils) };
}

/** The expected effect of settle.lua. */
export function settleInModel(redis: RedisModel, { balance, ends }: Message): void {
  if (!redis.balance || balance.version > redis.balance.version) redis.balance = balance;
  for (const { requestId, key, answered, failure, abandoned } of ends) {
    const hold = redis.holds.get(requestId);
    if (abandoned) redis.abandoned.add(requestId);
    if (abandoned !== "running") redis.holds.delete(requestId);
    else if (hold) hold.mils = 0;
    const record = key && redis.records.get(key.hash);
    if (!key || record?.requestId !== requestId) continue;
    if (answered) record.answered = true;
    else if (failure === undefined) redis.records.delete(key.hash);
    else record.failure = failure;
  }
}

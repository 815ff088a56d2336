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
  body?: string;
  failure?: { text: string; atMs: number };
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
  { priceMils, closed, late }: { priceMils: number; closed: boolean; late: boolean },
): object {
  const record = key && redis.records.get(key.hash);
  if (record && !record.failure && record.requestId !== requestId) {
    if (record.fingerprint !== key.fingerprint) return { outcome: "key_reused" };
    if (record.body !== undefined)
      return { outcome: "replayed", requestId: record.requestId, body: Buffer.from(record.body) };
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

/** The expected reply of settle.lua: for each end the answer that its key had before, and the request that brought it. */
export function settleInModel(redis: RedisModel, { balance, ends }: Message) {
  if (!redis.balance || balance.version > redis.balance.version) redis.balance = balance;
  return ends.map((end) => {
    const hold = redis.holds.get(end.requestId);
    if (end.abandoned) redis.abandoned.add(end.requestId);
    if (end.abandoned !== "running") redis.holds.delete(end.requestId);
    else if (hold) hold.mils = 0;
    if (!end.key) return undefined;
    const record = redis.records.get(end.key.hash);
    if (end.answer) return remember(redis, end, end.answer, record);
    if (record?.requestId !== end.requestId || record.body !== undefined) return undefined;
    if (end.failure === undefined) redis.records.delete(end.key.hash);
    else record.failure = { text: end.failure, atMs: performance.now() };
    return undefined;
  });
}

function remember(redis: RedisModel, { requestId, key }: HoldEnd, answer: Buffer, record: KeyRecord | undefined) {
  if (record?.body !== undefined) return { body: Buffer.from(record.body), requestId: record.requestId };
  const runsForAnother = record && !record.failure && record.requestId !== requestId;
  if (key && !runsForAnother) {
    const owner = record && !record.failure ? record : { requestId, fingerprint: key.fingerprint };
    redis.records.set(key.hash, { ...owner, body: answer.toString() });
  }
  return undefined;
}

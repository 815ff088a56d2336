import type { HoldEnd } from "../../../../shared/credits/holds.ts";
import type { VersionedBalance } from "../../../../shared/credits/versioned-balance.ts";
import type { Search } from "./cast.ts";

/** What Redis should hold of one organization, and what each script should make of it. */
export interface Gate {
  balance: VersionedBalance | undefined;
  holds: Map<string, { mils: number; keyHash: string; late: boolean }>;
  used: number;
  records: Map<string, KeyRecord>;
}

interface KeyRecord {
  requestId: string;
  fingerprint: string;
  body?: string;
  failure?: { text: string; toldAtMs: number };
}

/** What a decision sends to Redis: to be delivered now, late, twice, in another order, or never. */
export interface Message {
  organizationId: string;
  balance: VersionedBalance;
  ends: HoldEnd[];
}

export const emptyGate = (): Gate => ({ balance: undefined, holds: new Map(), used: 0, records: new Map() });
export const heldMilsOf = ({ holds }: Gate) => [...holds.values()].reduce((sum, { mils }) => sum + mils, 0);

/** How admit.lua should answer; the count of the window is in {@link Gate.used}. */
export function admitInGate(
  gate: Gate,
  { requestId, plan, key }: Search,
  { priceMils, closed, late }: { priceMils: number; closed: boolean; late: boolean },
): object {
  const record = key && gate.records.get(key.hash);
  if (record && !record.failure && record.requestId !== requestId) {
    if (record.fingerprint !== key.fingerprint) return { outcome: "key_reused" };
    if (record.body !== undefined)
      return { outcome: "replayed", requestId: record.requestId, body: Buffer.from(record.body) };
    if (gate.used >= plan.windowLimit) return { outcome: "limited" };
    gate.used += 1;
    return { outcome: "waiting", requestId: record.requestId };
  }
  if (closed) return { outcome: "closed" };
  if (!gate.balance) return { outcome: "cold" };
  const heldMils = heldMilsOf(gate);
  const availableMils = gate.balance.balanceMils - heldMils;
  if (priceMils > 0 && availableMils < priceMils)
    return { outcome: "short", availableMils: Math.max(0, availableMils), heldMils, version: gate.balance.version };
  if (gate.holds.size >= plan.concurrency) return { outcome: "crowded" };
  if (gate.used >= plan.windowLimit) return { outcome: "limited" };
  gate.used += 1;
  if (!gate.holds.has(requestId)) gate.holds.set(requestId, { mils: priceMils, keyHash: key?.hash ?? "", late });
  if (key) gate.records.set(key.hash, { requestId, fingerprint: key.fingerprint });
  return { outcome: "held", remainingMils: Math.max(0, availableMils - priceMils) };
}

/** What settle.lua should tell: for each end the bytes that were under its key before, and whose they are. */
export function settleInGate(gate: Gate, { balance, ends }: Message) {
  if (!gate.balance || balance.version > gate.balance.version) gate.balance = balance;
  return ends.map((end) => {
    gate.holds.delete(end.requestId);
    if (!end.key) return undefined;
    const record = gate.records.get(end.key.hash);
    if (end.answer) return remember(gate, end, end.answer, record);
    if (record?.requestId !== end.requestId || record.body !== undefined) return undefined;
    if (end.failure === undefined) gate.records.delete(end.key.hash);
    else record.failure = { text: end.failure, toldAtMs: performance.now() };
    return undefined;
  });
}

function remember(gate: Gate, { requestId, key }: HoldEnd, answer: Buffer, record: KeyRecord | undefined) {
  if (record?.body !== undefined) return { body: Buffer.from(record.body), requestId: record.requestId };
  const runsForAnother = record && !record.failure && record.requestId !== requestId;
  if (key && !runsForAnother) {
    const owner = record && !record.failure ? record : { requestId, fingerprint: key.fingerprint };
    gate.records.set(key.hash, { ...owner, body: answer.toString() });
  }
  return undefined;
}

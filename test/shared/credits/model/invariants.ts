import { deepStrictEqual, ok } from "node:assert/strict";
import { milsIn, spentMilsOf } from "./limits-model.ts";
import { type Model, takenMilsOf } from "./model.ts";
import type { PostgresSnapshot, RedisSnapshot } from "./snapshots.ts";

/**
 * Invariants of the money, checked on Postgres and Redis alone: they find a mistake that the model shares with the
 * product.
 */

type AccountSnapshot = PostgresSnapshot["accounts"][number];

export function checkPostgres(model: Model, { accounts, undelivered, paid, answers }: PostgresSnapshot): void {
  const entries = accounts.flatMap((account) => account.entries);
  const refunds = accounts.flatMap((account) => account.refunds);
  for (const { id, balanceMils, version, entries: own } of accounts) {
    let sumMils = 0;
    for (const [at, entry] of own.entries()) {
      sumMils += entry.mils;
      ok(entry.version === at + 1, `versions of ${id} have a gap at ${at + 1}`);
      ok(entry.balanceMils === sumMils && sumMils >= 0, `the balance of ${id} after version ${at + 1} is wrong`);
      const mayLower = entry.kind === "charge" || entry.kind === "correction";
      ok(entry.mils >= 0 || mayLower, `a ${entry.kind} lowers the balance of ${id}`);
    }
    ok(balanceMils === sumMils && version === own.length, `the balance of ${id} is not the sum of its ledger`);
    checkLimits(model, id, own);
  }
  for (const { requestId, key } of model.participants.searches) {
    const of = (kind: string) => entries.filter((entry) => entry.subject === requestId && entry.kind === kind);
    const [charge, ...more] = of("charge");
    const refunded = refunds.filter(({ subject }) => subject === requestId);
    ok(more.length + refunded.length + (charge ? 1 : 0) <= 1, `${requestId} was decided twice`);
    const [reversal, ...again] = of("reversal");
    const isOpen = undelivered.includes(requestId);
    ok(!isOpen || (charge && !key && !reversal), `${requestId} is undelivered without an open charge`);
    if (!reversal) continue;
    ok(again.length === 0, `${requestId} was reversed twice`);
    ok(charge && charge.mils + reversal.mils === 0, `${requestId} was reversed by another amount than it was charged`);
    ok(!key && !model.confirmed.has(requestId), `${requestId} has a key or was delivered, and was reversed`);
  }
  checkPaidKeys(model, entries);
  deepStrictEqual(
    answers.map(([key]) => key),
    paid.map(([key]) => key),
    "a key has paid and has no answer",
  );
  for (const [key, payer] of answers)
    ok(
      entries.some(({ kind, subject }) => kind === "charge" && subject === payer),
      `the answer of ${key} is not paid`,
    );
}

/** What was spent by each charge is within the limits that were in force when it was decided. */
function checkLimits({ postgres }: Model, organizationId: string, entries: AccountSnapshot["entries"]): void {
  for (const [at, { kind, mils, subject, tokenId }] of entries.entries()) {
    if (kind !== "charge" || mils === 0) continue;
    for (const ownerId of [organizationId, tokenId ?? ""]) {
      const { dayMils = Infinity, monthMils = Infinity } = postgres.chargedUnder.get(subject)?.get(ownerId) ?? {};
      const spentMils = spentMilsOf(entries.slice(0, at + 1), ownerId);
      ok(spentMils <= Math.min(dayMils, monthMils), `${subject} was charged beyond a limit of ${ownerId}`);
    }
  }
}

function checkPaidKeys({ participants }: Model, entries: AccountSnapshot["entries"]): void {
  const charged = new Set(entries.filter(({ kind }) => kind === "charge").map(({ subject }) => subject));
  const payers = participants.searches.filter(({ requestId, key }) => key && charged.has(requestId));
  const keys = payers.map(({ organizationId, key }) => `${organizationId} ${key?.hash}`);
  ok(new Set(keys).size === keys.length, `a key has paid twice: ${keys.join(", ")}`);
}

export function checkRedis(model: Model, account: AccountSnapshot, snapshot: RedisSnapshot): void {
  const { balance, heldMils, holds } = snapshot;
  const { id, entries, refunds } = account;
  const open = Object.entries(holds);
  checkSpending(model, account, snapshot);
  const sumMils = open.reduce((sum, [, { mils }]) => sum + mils, 0);
  ok(heldMils === sumMils, `${id} holds ${heldMils}, its holds sum to ${sumMils}`);
  const decided = new Set(
    [...entries.filter(({ kind }) => kind !== "grant"), ...refunds].map(({ subject }) => subject),
  );
  const runningMils = open.reduce((sum, [requestId, { mils }]) => (decided.has(requestId) ? sum : sum + mils), 0);
  if (balance.version !== undefined) {
    const then = entries[Number(balance.version) - 1];
    ok(then, `Redis has a newer balance of ${id} than Postgres`);
    ok(then.balanceMils === Number(balance.balance), `Redis has a balance of ${id} that Postgres never had`);
  }
  if (model.redisLostData.has(id)) return;
  // Searches that were admitted before a correction may hold what it took.
  const hadMils = account.balanceMils + takenMilsOf(model, id);
  ok(hadMils >= runningMils, `${id} has more mils held than it has`);
  const availableMils = Number(balance.balance ?? 0) - heldMils;
  ok(availableMils <= hadMils - runningMils, `Redis offers ${id} more than it has`);
}

/** What Redis says of spending was so at its version. Together with the holds it is never less than what was spent by now. */
function checkSpending(
  model: Model,
  { id, entries }: AccountSnapshot,
  { balance, tokens, holds }: RedisSnapshot,
): void {
  const { postgres, participants, redisLostData, limitsLag } = model;
  const tokenIds = participants.organizations.find((one) => one.id === id)?.tokenIds ?? [];
  for (const ownerId of [id, ...tokenIds]) {
    const [, version, spending] = /^(\d+):(.*)$/.exec((ownerId === id ? balance.spent : tokens[ownerId]) ?? "") ?? [];
    if (version === undefined || spending === undefined) continue;
    ok(Number(version) <= entries.length, `Redis has a newer version of what ${ownerId} spent than Postgres`);
    const then = spentMilsOf(entries.slice(0, Number(version)), ownerId);
    ok(milsIn(spending) === then, `Redis has a sum that ${ownerId} had not spent by version ${version}`);
    // Without a limit, and under another one, a search may have been admitted without a hold of its token.
    const isLimited = Object.keys(postgres.limits.get(ownerId)?.at(-1) ?? {}).length > 0;
    if (!isLimited || redisLostData.has(id) || limitsLag.has(id)) continue;
    const owned = participants.searches.filter(({ tokenId }) => ownerId === id || tokenId === ownerId);
    const heldMils = owned.reduce((sum, { requestId }) => {
      const mils = ownerId === id ? holds[requestId]?.mils : Number.parseInt(tokens[requestId] ?? "0", 10);
      return sum + (mils ?? 0);
    }, 0);
    const runningMils = owned.reduce(
      (sum, { requestId }) => sum + (postgres.decided.has(requestId) ? 0 : (holds[requestId]?.mils ?? 0)),
      0,
    );
    ok(
      then + heldMils >= spentMilsOf(entries, ownerId) + runningMils,
      `Redis offers more than the limits of ${ownerId} leave`,
    );
  }
}

import { deepStrictEqual, ok } from "node:assert/strict";
import type { Model } from "./model.ts";
import type { PostgresSnapshot, RedisSnapshot } from "./snapshots.ts";

/**
 * Invariants of the money, checked on Postgres and Redis alone: they find a mistake that the model shares with the
 * product.
 */

type AccountSnapshot = PostgresSnapshot["accounts"][number];

export function checkPostgres(model: Model, { accounts, undelivered, paid, answers }: PostgresSnapshot): void {
  const entries = accounts.flatMap((account) => account.entries);
  for (const { id, balanceMils, version, entries: own } of accounts) {
    let sumMils = 0;
    for (const [at, entry] of own.entries()) {
      sumMils += entry.mils;
      ok(entry.version === at + 1, `versions of ${id} have a gap at ${at + 1}`);
      ok(entry.balanceMils === sumMils && sumMils >= 0, `the balance of ${id} after version ${at + 1} is wrong`);
      ok(entry.mils >= 0 || entry.kind === "charge", `a ${entry.kind} lowers the balance of ${id}`);
    }
    ok(balanceMils === sumMils && version === own.length, `the balance of ${id} is not the sum of its ledger`);
  }
  for (const { requestId, key } of model.participants.searches) {
    const of = (kind: string) => entries.filter((entry) => entry.subject === requestId && entry.kind === kind);
    const [charge, ...more] = of("charge");
    ok(more.length + of("refund").length + (charge ? 1 : 0) <= 1, `${requestId} was decided twice`);
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

function checkPaidKeys({ participants }: Model, entries: AccountSnapshot["entries"]): void {
  const charged = new Set(entries.filter(({ kind }) => kind === "charge").map(({ subject }) => subject));
  const payers = participants.searches.filter(({ requestId, key }) => key && charged.has(requestId));
  const keys = payers.map(({ organizationId, key }) => `${organizationId} ${key?.hash}`);
  ok(new Set(keys).size === keys.length, `a key has paid twice: ${keys.join(", ")}`);
}

export function checkRedis(model: Model, account: AccountSnapshot, { balance, heldMils, holds }: RedisSnapshot): void {
  const { id, entries } = account;
  const open = Object.entries(holds);
  const sumMils = open.reduce((sum, [, { mils }]) => sum + mils, 0);
  ok(heldMils === sumMils, `${id} holds ${heldMils}, its holds sum to ${sumMils}`);
  const decided = new Set(entries.filter(({ kind }) => kind !== "grant").map(({ subject }) => subject));
  const runningMils = open.reduce((sum, [requestId, { mils }]) => (decided.has(requestId) ? sum : sum + mils), 0);
  if (balance.version !== undefined) {
    const then = entries[Number(balance.version) - 1];
    ok(then, `Redis has a newer balance of ${id} than Postgres`);
    ok(then.balanceMils === Number(balance.balance), `Redis has a balance of ${id} that Postgres never had`);
  }
  if (model.redisLostData.has(id)) return;
  ok(account.balanceMils >= runningMils, `${id} has more mils held than it has`);
  const availableMils = Number(balance.balance ?? 0) - heldMils;
  ok(availableMils <= account.balanceMils - runningMils, `Redis offers ${id} more than it has`);
}

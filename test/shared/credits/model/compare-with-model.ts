import { deepStrictEqual } from "node:assert/strict";
import { accountOf, type PostgresModel } from "./postgres-state.ts";
import { type Participants, keyHashes } from "./participants.ts";
import { type RedisModel, heldMilsOf, tokenHeldMilsOf } from "./redis-model.ts";
import { spentMilsOf } from "./limits-model.ts";
import { checkPostgres, checkRedis } from "./invariants.ts";
import { redisModelOf, type Model, type Real } from "./model.ts";
import { readPostgres, readRedis, type PostgresSnapshot, type RedisSnapshot } from "./snapshots.ts";

/** The expected state of Postgres in the form of a snapshot. */
export function expectedPostgres(participants: Participants, postgres: PostgresModel): PostgresSnapshot {
  return {
    accounts: participants.organizations
      .map(({ id }) => id)
      .toSorted()
      .map((id) => ({
        id,
        ...(postgres.accounts.get(id) ?? { balanceMils: 0, version: 0, entries: [], refunds: [] }),
      })),
    undelivered: [...postgres.undelivered].toSorted(),
    paid: [...postgres.paid].toSorted(([one], [other]) => (one < other ? -1 : 1)),
    answers: [...postgres.answers]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, { requestId, compressed }]) => [key, requestId, compressed]),
    limits: participants.organizations
      .flatMap(({ id, tokenIds }) => [id, ...tokenIds].map((owner) => ({ id, owner })))
      .toSorted((one, other) => (one.owner < other.owner ? -1 : 1))
      .flatMap(({ id, owner }) => {
        const limits = postgres.limits.get(owner)?.at(-1);
        if (!limits) return [];
        const spentMils = spentMilsOf(accountOf(postgres, id).entries, owner);
        return [[owner, limits.dayMils ?? null, limits.monthMils ?? null, spentMils, spentMils]];
      }),
  };
}

function expectedTokens(redis: RedisModel): Record<string, string> {
  const { tokens, tokenHolds } = redis;
  const holding = new Set([...tokenHolds.values()].map(({ tokenId }) => tokenId));
  return Object.fromEntries([
    ...[...tokens].map(([tokenId, { version, spending }]) => [tokenId, `${version}:${spending}`]),
    ...[...tokenHolds].map(([requestId, { mils, tokenId }]) => [requestId, `${mils}:${tokenId}`]),
    ...[...holding].map((tokenId) => [`held:${tokenId}`, String(tokenHeldMilsOf(redis, tokenId))]),
  ]);
}

function expectedRedis(redis: RedisModel): RedisSnapshot {
  const { balance, holds, used } = redis;
  const records = keyHashes.map((hash): [string, Record<string, string>] => {
    const { requestId: request, fingerprint, answered, failure } = redis.records.get(hash) ?? {};
    if (request === undefined || fingerprint === undefined) return [hash, {}];
    return [hash, { request, fingerprint, ...(failure && { failure }), ...(answered && { answered: "" }) }];
  });
  const { balanceMils, version, spending, entryId = "" } = balance ?? {};
  return {
    balance: balance
      ? {
          balance: String(balanceMils),
          version: String(version),
          ...(spending !== undefined && { spent: `${version}:${spending}` }),
          entry: entryId,
        }
      : {},
    tokens: expectedTokens(redis),
    heldMils: heldMilsOf(redis),
    holds: Object.fromEntries([...holds].map(([id, { mils, keyHash }]) => [id, { mils, keyHash }])),
    used,
    records: Object.fromEntries(records),
  };
}

/** Reads Postgres and Redis, and compares them with the model and with the invariants. */
export async function compareWithModel(model: Model, real: Real): Promise<void> {
  const ids = model.participants.organizations.map(({ id }) => id);
  const [postgres, ...redisSnapshots] = await Promise.all([
    real.postgres ?? readPostgres(model.participants, real.database),
    ...ids.map((id) => readRedis(real.redis, id)),
  ]);
  real.postgres = postgres;
  checkPostgres(model, postgres);
  for (const [at, id] of ids.entries()) {
    const snapshot = redisSnapshots[at];
    const account = postgres.accounts.find((one) => one.id === id);
    if (!snapshot || !account) throw new Error(`${id} is missing`);
    checkRedis(model, account, snapshot);
    deepStrictEqual(snapshot, expectedRedis(redisModelOf(model, id)));
  }
  deepStrictEqual(postgres, expectedPostgres(model.participants, model.postgres));
}

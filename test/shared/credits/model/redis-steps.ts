import { deepStrictEqual } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import {
  findOverdueHolds,
  freeDecidedHolds,
  indexEntryOf,
  readOpenHolds,
} from "../../../../shared/credits/open-holds.ts";
import { admit } from "../../../../shared/credits/admit.ts";
import { settleHolds } from "../../../../shared/credits/holds.ts";
import { holdIndexKey, keysOf } from "../../../../shared/credits/redis-keys.ts";
import type { IdempotencyKey } from "../../../../shared/queue/search-job.ts";
import { nameOfKey, readPaidKeys, readStoredAnswers } from "../../../../shared/credits/stored-answers.ts";
import { balanceOf, expandedAnswer } from "./postgres-model.ts";
import { keyOf } from "./postgres-state.ts";
import { payerLimitsOf, tokenSpendingOf } from "./limits-model.ts";
import { admitInModel, emptyRedis, freeInModel, knowsSpending, type Message, settleInModel } from "./redis-model.ts";
import { decideCall } from "./ledger-calls.ts";
import { callAlone } from "./ledger-steps.ts";
import {
  balanceMessage,
  type Model,
  noteLimits,
  organizationAt,
  type Real,
  redisKeysOf,
  redisModelOf,
  removeKeys,
  searchChoice,
  searchOf,
  type Settlement,
} from "./model.ts";
import { searchesMax } from "./participants.ts";
import { steps } from "./step.ts";

/** One of the two organizations. */
export const organization = fc.nat(1);
const budgetMs = 3_600_000;
// A hold with a budget of 0 is overdue at once, a hold with an hour only at the end of the run.
const overdueNowMs = -1_000;
export const overdueAllMs = -2 * budgetMs;

export const admission = steps(
  "admit",
  fc.record({
    search: searchChoice,
    shed: fc.nat(7).map((n) => n === 7),
    late: fc.nat(3).map((n) => n === 3),
    checksPaidKey: fc.boolean(),
    staysCold: fc.nat(7).map((n) => n === 7),
    // An API may know the limits as they were before their last change.
    limitsAge: fc.nat(7).map((n) => (n === 7 ? (2 as const) : (1 as const))),
  }),
  async (model, real, given) => {
    const search = searchOf(model, given.search, ({ requestId: id }) => !model.postgres.decided.has(id));
    const { requestId, organizationId, tokenId, key } = search;
    const decided = model.postgres.decided.get(requestId);
    // An admission can arrive twice and late, but never after its search was charged.
    if (decided?.kind === "charge" || decided?.reason === "already_paid") return;
    const hasStoredAnswer =
      key !== undefined && given.checksPaidKey && (await lookUp(model, real, organizationId, key));
    const redisModel = redisModelOf(model, organizationId);
    const limits = payerLimitsOf(model.postgres, search, given.limitsAge);
    if (!knowsSpending(redisModel, limits) && !given.staysCold)
      await deliver(model, real, creditMessage(model, organizationId, tokenId));
    noteLimits(model, organizationId, true);
    const predicted = admitInModel(redisModel, search, { ...given, hasStoredAnswer, limits });
    noteLimits(model, organizationId, isDeepStrictEqual(limits, payerLimitsOf(model.postgres, search)));
    const budget = given.late ? 0 : budgetMs;
    const request = { ...search, limits, budgetMs: budget, openMax: given.shed ? 0 : undefined, hasStoredAnswer };
    const { window, ...answer } = await admit(real.redis, request);
    model.history.push(`admit ${requestId}: ${answer.outcome}`);
    real.met(`admit: ${answer.outcome}`);
    if ("deadlineAtMs" in answer) Reflect.deleteProperty(answer, "deadlineAtMs"); // The model does not predict Redis' clock.
    if ("organizations" in answer) Reflect.deleteProperty(answer, "organizations"); // Nor other organizations.
    if ("retryAfterMs" in answer) Reflect.deleteProperty(answer, "retryAfterMs");
    deepStrictEqual({ ...answer, used: window.used }, { ...predicted, used: redisModel.used });
  },
);

/** What an API copies to Redis for a caller: the balance, and what the organization and the token spent. */
export const creditMessage = ({ postgres }: Model, organizationId: string, tokenId: string): Message =>
  balanceMessage(organizationId, balanceOf(postgres, organizationId), [
    tokenSpendingOf(postgres, organizationId, tokenId),
  ]);

/** Reads from Postgres what a key has paid for. @returns whether it has paid for this query. */
async function lookUp(model: Model, real: Real, organizationId: string, key: IdempotencyKey): Promise<boolean> {
  const owned = { organizationId, hash: key.hash };
  const name = keyOf(organizationId, key.hash);
  const paid = (await readPaidKeys(real.database, [owned])).get(nameOfKey(owned));
  deepStrictEqual(paid?.fingerprint, model.postgres.paid.get(name));
  const expected = model.postgres.answers.get(name);
  deepStrictEqual(
    await (await readStoredAnswers(real.database, [owned])).get(nameOfKey(owned)),
    expected && expandedAnswer(expected),
  );
  return paid?.fingerprint === key.fingerprint;
}

/** The calls that count as unpaid: those of each flight once, and no loss of an organization's keys forgets them. */
function countInModel({ countedFlights }: Model, ends: Message["ends"]): number {
  const fresh = new Map(ends.flatMap(({ calls }) => (calls ? [[calls.flight, calls.calls]] : [])));
  for (const flight of countedFlights) fresh.delete(flight);
  for (const flight of fresh.keys()) countedFlights.add(flight);
  return [...fresh.values()].reduce((sum, calls) => sum + calls, 0);
}

export async function deliver(model: Model, real: Real, message: Message): Promise<void> {
  const { organizationId, balance, tokens, ends, frees } = message;
  const ended = ends.map(
    ({ requestId, answered, failure, isLeft, calls }) =>
      `${requestId} ${answered ? "answered" : (failure ?? "freed")}${isLeft ? ", left" : ""}${calls ? ", unpaid" : ""}`,
  );
  model.history.push(
    `deliver ${balance.balanceMils} mils of version ${balance.version} to ${organizationId}: ${ended.join("; ")}${frees.length > 0 ? ` frees ${frees.join(", ")}` : ""}`,
  );
  const redisModel = redisModelOf(model, organizationId);
  settleInModel(redisModel, message);
  const unpaidCalls = countInModel(model, ends);
  deepStrictEqual(await settleHolds(real.redis, organizationId, balance, ends, { tokens }), unpaidCalls);
  freeInModel(redisModel, message);
  if (frees.length > 0) await freeDecidedHolds(real.redis, organizationId, balance.version, frees);
  if (frees.length > 0) real.met("deliver: frees");
  if (unpaidCalls > 0) real.met("deliver: unpaid calls");
  // The end of a record expires after seconds, which a slow run may take.
  for (const { key } of ends) if (key) await real.redis.persist(keysOf(organizationId).record(key.hash));
}

export const delivery = steps(
  "deliver",
  fc.record({
    message: fc.integer({ min: -4, max: 9 }), // Below 0: the newest message, so that answers arrive while repeats wait for them.
    afterwards: fc.constantFrom("forget" as const, "forget" as const, "keep" as const, "lose instead" as const),
  }),
  async (model, real, { message: at, afterwards }) => {
    const message = model.messagesInFlight.at(Math.max(-1, at) % Math.max(1, model.messagesInFlight.length));
    if (!message) return;
    if (afterwards !== "keep") model.messagesInFlight.splice(model.messagesInFlight.indexOf(message), 1);
    if (afterwards === "lose instead") {
      model.messagesLost.add(message.organizationId);
      model.history.push(`lose version ${message.balance.version} to ${message.organizationId}`);
    } else await deliver(model, real, message);
    real.met(`deliver, then ${afterwards}`);
  },
);

/** Finds overdue holds and refunds them. The messages of these refunds are in flight like all others. */
export async function sweepAll(model: Model, real: Real, graceMs: number): Promise<void> {
  const open = [...model.redis].flatMap(([organizationId, { holds }]) =>
    [...holds].map(([requestId, hold]) => ({ organizationId, requestId, ...hold })),
  );
  const expected = open
    .filter(({ late }) => late || graceMs === overdueAllMs)
    .map(({ organizationId, requestId, keyHash }) => ({ organizationId, requestId, keyHash: keyHash || undefined }));
  const overdue = await findOverdueHolds(real.redis, { graceMs, limit: searchesMax });
  const heldMils = open.reduce((sum, { mils }) => sum + mils, 0);
  deepStrictEqual(await readOpenHolds(real.redis), { open: open.length, heldMils });
  deepStrictEqual(
    new Map(overdue.map((hold) => [hold.requestId, hold])),
    new Map(expected.map((hold) => [hold.requestId, hold])),
  );
  if (overdue.length === 0) return;
  const settlements = overdue.map(({ organizationId, requestId, keyHash }): Settlement => {
    const key = keyHash ? { hash: keyHash, fingerprint: "" } : undefined;
    return { organizationId, requestId, key, wanted: "refund", reason: "swept", ifCharged: "end_hold" };
  });
  await callAlone(model, real, decideCall(settlements));
  model.history.push("swept");
  real.met("sweep");
}

export const sweep = steps("sweep", fc.constant(undefined), (model, real) => sweepAll(model, real, overdueNowMs));

export const flush = steps("flush", organization, async (model, real, at) => {
  const { id } = organizationAt(model, at);
  model.redis.set(id, emptyRedis());
  model.redisLostData.add(id);
  await removeKeys(real, id);
  await real.redis.del(...redisKeysOf(id));
  model.history.push(`flush ${id}`);
  real.met("flush");
});

export const save = steps("save", organization, async (model, real, at) => {
  const { id } = organizationAt(model, at);
  model.history.push(`save ${id}`);
  model.saved.set(id, structuredClone(redisModelOf(model, id)));
  const copies = redisKeysOf(id).map(async (key) => {
    const [bytes, expiresAtMs] = await Promise.all([real.redis.dumpBuffer(key), real.redis.pexpiretime(key)]);
    return bytes ? [{ key, bytes, expiresAtMs }] : [];
  });
  real.saved.set(id, (await Promise.all(copies)).flat());
});

/** The index is of all organizations, so the copies of one lack its entries. */
async function indexRestored({ redis }: Real, organizationId: string): Promise<void> {
  const { held: _, ...holds } = await redis.hgetall(keysOf(organizationId).holds);
  for (const [requestId, hold] of Object.entries(holds)) {
    const [, deadlineMs = "", keyHash = ""] = hold.split(":");
    await redis.zadd(holdIndexKey, deadlineMs, indexEntryOf({ organizationId, requestId, keyHash }));
  }
}

export const restore = steps("restore", organization, async (model, real, at) => {
  const { id } = organizationAt(model, at);
  const redisModel = model.saved.get(id);
  if (!redisModel) return;
  model.redis.set(id, structuredClone(redisModel));
  model.redisLostData.add(id);
  await removeKeys(real, id);
  await real.redis.del(...redisKeysOf(id));
  for (const { key, bytes, expiresAtMs } of real.saved.get(id) ?? [])
    await real.redis.restore(key, Math.max(0, expiresAtMs), bytes, "ABSTTL");
  await indexRestored(real, id);
  model.history.push(`restore ${id}`);
  real.met("restore");
});

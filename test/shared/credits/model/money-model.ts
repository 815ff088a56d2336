import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import type { Redis } from "ioredis";
import type { Database } from "../../../../shared/database/pool.ts";
import { holdIndexKey } from "../../../../shared/credits/redis-keys.ts";
import { balanceOf, pairOf } from "./postgres-model.ts";
import { createParticipants } from "./participants.ts";
import { admission, deliver, delivery, flush, overdueAllMs, restore, save, sweep, sweepAll } from "./redis-steps.ts";
import { checkCredit, usage } from "./credit-steps.ts";
import { reverseCall } from "./ledger-calls.ts";
import { callAlone, oneCall, race } from "./ledger-steps.ts";
import { newModel, redisModelOf, type Model, balanceMessage, type Real, removeKeys, withHistory } from "./model.ts";
import { compareWithModel } from "./compare-with-model.ts";

/**
 * A model-based test of the money of two organizations. Random commands call the real scripts and functions; after each
 * command Postgres and Redis are compared with a small model. Messages from Postgres to Redis stay in flight until a
 * command delivers them, so they arrive late, twice, in any order or never. Races make calls of Postgres overlap.
 */

const command = fc.oneof(
  { weight: 30, arbitrary: admission },
  { weight: 26, arbitrary: oneCall },
  { weight: 28, arbitrary: delivery },
  { weight: 8, arbitrary: race },
  { weight: 5, arbitrary: checkCredit },
  { weight: 2, arbitrary: usage },
  { weight: 4, arbitrary: sweep },
  { weight: 3, arbitrary: save },
  { weight: 3, arbitrary: restore },
  { weight: 2, arbitrary: flush },
);

const commandsMax = 40;
// The longest time that fast-check spends on shrinking a counterexample.
const shrinkMsMax = 15_000;

export interface MoneyModelOptions {
  database: Database;
  redis: Redis;
  runs: number;
  /** Repeats the run that reported this seed. */
  seed?: number | undefined;
  /** Whether to look for a smaller counterexample. */
  shrink?: boolean | undefined;
}

/**
 * @returns the number of runs, and how often each kind of step occurred.
 * @throws an error with the seed, the path and the smallest counterexample that was found.
 */
export async function checkMoneyModel(options: MoneyModelOptions): Promise<{ runs: number; met: Map<string, number> }> {
  const { database, redis, runs, shrink = true } = options;
  // Bounds only the shrinking of a counterexample.
  let endAtMs = Number.POSITIVE_INFINITY;
  const met = new Map<string, number>();
  const count = (what: string) => void met.set(what, (met.get(what) ?? 0) + 1);
  let made = 0;
  let hasFailed = false;
  const property = fc.asyncProperty(
    fc.commands([command], { maxCommands: commandsMax, size: "max" }),
    async (commands) => {
      if (performance.now() > endAtMs) return;
      made += 1;
      const real: Real = { database, redis, saved: new Map(), postgres: undefined, met: count };
      await redis.del(holdIndexKey); // What a broken run has left.
      const today = utcDay();
      const model = newModel(await createParticipants(database));
      try {
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await checkAtRest(model, real);
      } catch (error) {
        if (utcDay() !== today) return removeAll(model, real); // The model knows one day.
        if (!hasFailed) endAtMs = performance.now() + shrinkMsMax;
        hasFailed = true;
        throw error;
      }
    },
  );
  await fc.assert(property, {
    numRuns: runs,
    endOnFailure: !shrink,
    includeErrorInReport: true,
    unbiased: true, // Long runs as often as short ones: rare combinations occur in long runs.
    ...(options.seed !== undefined && { seed: options.seed }),
  });
  return { runs: made, met };
}

const utcDay = () => new Date().toISOString().slice(0, 10);

async function checkAtRest(model: Model, real: Real): Promise<void> {
  try {
    await bringToRest(model, real);
  } catch (error) {
    throw withHistory(model, "at rest", error);
  }
}

/** Delivers all messages and runs the sweeper and the reconciler. After that no hold and no undelivered charge may be left. */
async function bringToRest(model: Model, real: Real): Promise<void> {
  const ids = model.participants.organizations.map(({ id }) => id);
  await deliverAll(model, real);
  for (const id of ids) {
    const isComplete = !model.redisLostData.has(id) && !model.messagesLost.has(id);
    const { balanceMils, version } = redisModelOf(model, id).balance ?? {};
    if (isComplete)
      deepStrictEqual(
        { balanceMils, version },
        pairOf(model.postgres, id),
        "the messages alone bring the balance to Redis",
      );
  }
  await sweepAll(model, real, overdueAllMs);
  const undelivered = model.participants.searches.filter(({ requestId }) => model.postgres.undelivered.has(requestId));
  if (undelivered.length > 0) await callAlone(model, real, reverseCall(undelivered));
  for (const id of ids) model.messagesInFlight.push(balanceMessage(id, balanceOf(model.postgres, id)));
  await deliverAll(model, real);
  real.postgres = undefined;
  await compareWithModel(model, real);
  for (const id of ids) {
    const { holds, balance, records } = redisModelOf(model, id);
    deepStrictEqual([holds.size, balance], [0, balanceOf(model.postgres, id)]);
    for (const { requestId, answered, failure } of records.values())
      ok(answered || failure !== undefined, `${requestId} still runs under its key`);
  }
  await removeAll(model, real);
}

async function removeAll({ participants }: Model, real: Real): Promise<void> {
  for (const { id } of participants.organizations) await removeKeys(real, id);
}

async function deliverAll(model: Model, real: Real): Promise<void> {
  for (const message of model.messagesInFlight.splice(0)) await deliver(model, real, message);
}

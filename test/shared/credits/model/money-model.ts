import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import type { Redis } from "ioredis";
import type { Database } from "../../../../shared/database/pool.ts";
import { balanceOf } from "./books.ts";
import { newCast } from "./cast.ts";
import {
  admission,
  deliver,
  delivery,
  flush,
  overdueAllMs,
  restore,
  save,
  seed,
  sweep,
  sweepOne,
  usage,
} from "./gate-steps.ts";
import { reverseCall } from "./ledger-calls.ts";
import { callAlone, oneCall, race } from "./ledger-steps.ts";
import { beginMoney, gateOf, type Money, newsOf, type Real, redisKeysOf, retold } from "./money.ts";
import { watch } from "./watch.ts";

/**
 * The money of two organizations, driven through the real scripts and functions by random commands, and held against a
 * small model after each. What is decided in Postgres lies in a bag until some command delivers it to Redis, so that
 * messages come late, twice, in any order or never; races make calls of Postgres overlap.
 */

const command = fc.oneof(
  { weight: 30, arbitrary: admission },
  { weight: 26, arbitrary: oneCall },
  { weight: 28, arbitrary: delivery },
  { weight: 8, arbitrary: race },
  { weight: 3, arbitrary: seed },
  { weight: 2, arbitrary: usage },
  { weight: 4, arbitrary: sweep },
  { weight: 3, arbitrary: save },
  { weight: 3, arbitrary: restore },
  { weight: 2, arbitrary: flush },
);

// How long a counterexample is made smaller.
const shrinkMsMax = 15_000;

export interface MoneyModelOptions {
  database: Database;
  redis: Redis;
  runs: number;
  /** Repeats a run that was reported with this seed. */
  seed?: number | undefined;
  commandsMax?: number | undefined;
}

/**
 * @returns the runs that were made, and how often what was met.
 * @throws with seed, path and the smallest counterexample found.
 */
export async function checkMoneyModel(options: MoneyModelOptions): Promise<{ runs: number; met: Map<string, number> }> {
  const { database, redis, runs, commandsMax = 40 } = options;
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
      const real: Real = { database, redis, saved: new Map(), seen: new Map(), books: undefined, met: count };
      const money = beginMoney(await newCast(database));
      try {
        await fc.asyncModelRun(() => ({ model: money, real }), commands);
        await comeToRest(money, real);
      } catch (error) {
        if (!hasFailed) endAtMs = performance.now() + shrinkMsMax;
        hasFailed = true;
        throw error;
      }
    },
  );
  await fc.assert(property, {
    numRuns: runs,
    includeErrorInReport: true,
    unbiased: true, // Long runs as often as short ones: the rare meetings are in the long ones.
    ...(options.seed !== undefined && { seed: options.seed }),
  });
  return { runs: made, met };
}

async function comeToRest(money: Money, real: Real): Promise<void> {
  try {
    await rest(money, real);
  } catch (error) {
    throw retold(money, "at rest", error);
  }
}

/** Everything arrives, the sweeper and the reconciler do their rounds; then nothing may be left open. */
async function rest(money: Money, real: Real): Promise<void> {
  const ids = money.cast.organizations.map(({ id }) => id);
  await deliverAll(money, real);
  for (const id of ids) {
    const isComplete = !money.forgetful.has(id) && !money.lossy.has(id);
    if (isComplete)
      deepStrictEqual(gateOf(money, id).balance, balanceOf(money.books, id), "messages alone bring the balance");
  }
  for (const id of ids) await sweepOne(money, real, id, overdueAllMs);
  const undelivered = money.cast.searches.filter(({ requestId }) => money.books.undelivered.has(requestId));
  if (undelivered.length > 0) await callAlone(money, real, reverseCall(undelivered));
  for (const id of ids) money.bag.push(newsOf(id, balanceOf(money.books, id)));
  await deliverAll(money, real);
  real.books = undefined;
  await watch(money, real);
  for (const id of ids) {
    const { holds, balance, records } = gateOf(money, id);
    deepStrictEqual([holds.size, balance], [0, balanceOf(money.books, id)]);
    for (const { requestId, body, failure } of records.values())
      ok(body !== undefined || failure !== undefined, `${requestId} still runs under its key`);
  }
  await real.redis.del(...ids.flatMap(redisKeysOf));
}

async function deliverAll(money: Money, real: Real): Promise<void> {
  for (const message of money.bag.splice(0)) await deliver(money, real, message);
}

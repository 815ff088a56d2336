import { deepStrictEqual } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { LedgerCall } from "./ledger-call.ts";
import { callOf, ledgerChoice } from "./ledger-calls.ts";
import type { Model, Real } from "./model.ts";
import { readPostgres } from "./snapshots.ts";
import { expectedPostgres } from "./compare-with-model.ts";
import { steps } from "./step.ts";

// Long enough for the calls to arrive and queue up behind the lock.
const lockedSeconds = 0.003;

/** Makes one call without concurrency, so that its result is certain. */
export async function callAlone(model: Model, real: Real, call: LedgerCall): Promise<void> {
  model.history.push(call.description);
  real.postgres = undefined;
  const predicted = call.predict(model.postgres);
  deepStrictEqual(await call.make(real.database), predicted);
  call.apply(model);
  real.met(call.kind);
}

export const oneCall = steps("call", ledgerChoice, async (model, real, choice) => {
  const call = callOf(model, choice);
  if (call) await callAlone(model, real, call);
});

/**
 * Starts several calls at the same moment, each on its own connection. Results and final state must equal those of some
 * serial order of the calls (serializability). The model continues with that order.
 */
export const race = steps(
  "race",
  fc.record({
    choices: fc.array(ledgerChoice, { minLength: 2, maxLength: 3, size: "max" }),
    behindLock: fc.nat(3).map((n) => n > 0),
  }),
  async (model, real, { choices, behindLock }) => {
    const calls = choices.flatMap((choice) => callOf(model, choice) ?? []);
    model.history.push(calls.map((call) => call.description).join(" || "));
    const answers = await together(real, calls, behindLock);
    const after = await readPostgres(model.participants, real.database);
    real.postgres = after;
    const serialOrders = ordersOf(calls).map((order) => {
      const postgres = structuredClone(model.postgres);
      const predicted = new Map(order.map((call) => [call, call.predict(postgres)]));
      return {
        order,
        postgres,
        answers: calls.map((call) => predicted.get(call)),
        after: expectedPostgres(model.participants, postgres),
      };
    });
    const found = serialOrders.find((one) => isDeepStrictEqual([one.answers, one.after], [answers, after]));
    // No serial order has this result: report the difference to the first order.
    if (!found) return deepStrictEqual([answers, after], [serialOrders[0]?.answers, serialOrders[0]?.after]);
    for (const call of found.order) call.predict(model.postgres);
    for (const call of found.order) call.apply(model);
    if (calls.length > 1) real.met(`race of ${calls.length}`);
    if (found !== serialOrders[0]) real.met("race in another order than sent");
  },
);

async function together({ database }: Real, calls: readonly LedgerCall[], behindLock: boolean): Promise<unknown[]> {
  const make = () => Promise.all(calls.map((call) => call.make(database)));
  if (!behindLock) return make();
  const holder = await database.connect();
  try {
    const ids = calls.flatMap((call) => call.organizationIds);
    await holder.query("begin");
    await holder.query("select from organizations where id = any ($1) order by id for no key update", [ids]);
    const release = async () => {
      await holder.query(`select pg_sleep(${lockedSeconds})`);
      await holder.query("commit");
    };
    const [answers] = await Promise.all([make(), release()]);
    return answers;
  } finally {
    holder.release();
  }
}

function ordersOf<T>(of: readonly T[]): T[][] {
  if (of.length <= 1) return [[...of]];
  return of.flatMap((first, at) => ordersOf(of.toSpliced(at, 1)).map((rest) => [first, ...rest]));
}

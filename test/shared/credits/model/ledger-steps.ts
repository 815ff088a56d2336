import { deepStrictEqual } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { callOf, type LedgerCall, ledgerWish } from "./ledger-calls.ts";
import type { Money, Real } from "./money.ts";
import { readBooks } from "./seen.ts";
import { expectedBooks } from "./watch.ts";
import { steps } from "./step.ts";

// Long enough for the calls to arrive and queue up behind the lock.
const lockedSeconds = 0.003;

/** Makes one call after which nothing is open to chance. */
export async function callAlone(money: Money, real: Real, call: LedgerCall): Promise<void> {
  money.story.push(call.told);
  real.books = undefined;
  const foreseen = call.foresee(money.books);
  deepStrictEqual(await call.make(real.database), foreseen);
  call.follow(money);
  real.met(call.kind);
}

export const oneCall = steps("call", ledgerWish, async (money, real, wished) => {
  const call = callOf(money, wished);
  if (call) await callAlone(money, real, call);
});

/**
 * Starts several calls at the same moment on connections of their own. Whatever comes out must be what comes out of some
 * order of them, one after the other; from then on the model believes in that order.
 */
export const race = steps(
  "race",
  fc.record({
    wishes: fc.array(ledgerWish, { minLength: 2, maxLength: 3, size: "max" }),
    behindLock: fc.nat(3).map((n) => n > 0),
  }),
  async (money, real, { wishes, behindLock }) => {
    const calls = wishes.flatMap((wished) => callOf(money, wished) ?? []);
    money.story.push(calls.map((call) => call.told).join(" || "));
    const answers = await together(real, calls, behindLock);
    const after = await readBooks(money.cast, real.database);
    real.books = after;
    const tried = ordersOf(calls).map((order) => {
      const books = structuredClone(money.books);
      const foreseen = new Map(order.map((call) => [call, call.foresee(books)]));
      return {
        order,
        books,
        answers: calls.map((call) => foreseen.get(call)),
        after: expectedBooks(money.cast, books),
      };
    });
    const found = tried.find((one) => isDeepStrictEqual([one.answers, one.after], [answers, after]));
    // No order explains it: show the difference to one of them.
    if (!found) return deepStrictEqual([answers, after], [tried[0]?.answers, tried[0]?.after]);
    for (const call of found.order) call.foresee(money.books);
    for (const call of found.order) call.follow(money);
    if (calls.length > 1) real.met(`race of ${calls.length}`);
    if (found !== tried[0]) real.met("race in another order than sent");
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

import { afterAll, expect, test } from "vitest";
import { verifyLedger } from "../../../../commands/ledger.ts";
import { openFreshDatabase } from "../../../harness/servers/open-database.ts";
import { openFreshRedis } from "../../../harness/servers/open-redis.ts";
import { checkMoneyModel } from "./money-model.ts";

const runs = 60;
// A run takes about 35 ms on a quiet machine and 2 s on one with a load of 25.
const timeoutMs = 240_000;

const { redis } = await openFreshRedis(afterAll);
const { database } = await openFreshDatabase(afterAll, { sizeMax: 4 });

test(
  "whatever happens to its messages, and in whatever order, no mil appears, vanishes or is spent twice",
  async () => {
    const { runs: made, met } = await checkMoneyModel({ database, redis, runs });
    expect(made).toBe(runs);
    // A model that meets none of these proves nothing.
    expect([...met.keys()]).toEqual(
      expect.arrayContaining([
        "admit: held",
        "admit: insufficient_credit",
        "admit: spending_limit",
        "deliver: unpaid calls",
        "correct",
        "decide",
        "limit",
        "reverse",
        "race of 2",
        "deliver, then keep",
        "sweep",
      ]),
    );
    // The second check finds the checkpoints of the first.
    for (const isFull of [false, true])
      expect(await verifyLedger(database, redis, { isFull })).toMatchObject({ ok: true, violations: [] });
  },
  timeoutMs,
);

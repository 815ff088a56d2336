import { afterAll, expect, test } from "vitest";
import { Redis } from "ioredis";
import { Shutdown } from "../../../../shared/concurrency/shutdown.ts";
import { verifyLedger } from "../../../../commands/ledger.ts";
import { openDatabase } from "../../../../shared/database/pool.ts";
import { openLog } from "../../../../shared/log.ts";
import { freshDatabase, freshRedis } from "../../../harness/servers/servers.ts";
import { checkMoneyModel } from "./money-model.ts";

const runs = 60;
// A run takes about 35 ms on a quiet machine and 2 s on one with a load of 25.
const timeoutMs = 240_000;

const log = openLog({ name: "test", level: "silent" });
const shutdown = new Shutdown();
const [fresh, server] = await Promise.all([freshDatabase(), freshRedis()]);
const redis = new Redis(server.url);
const database = openDatabase({ url: fresh.url, name: "test", sizeMax: 4, log, shutdown });
afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await shutdown.run(log);
  await fresh.drop();
});

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

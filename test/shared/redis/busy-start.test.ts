import { setImmediate as nextTurn } from "node:timers/promises";
import { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { processUrlOf } from "../../../local/postgres.ts";
import { startRedis } from "../../../local/redis.ts";
import { awaitSingleRedis } from "../../../shared/redis/connect.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { RunningProcess } from "../../harness/processes/process.ts";
import { usualSettings } from "../../harness/processes/supervised-process.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";

/** A Redis that refuses every command with BUSY, because a script does not end. */

const [server, database] = await Promise.all([
  startRedis({ extraArgs: ["--busy-reply-threshold", "50"] }),
  freshDatabase(),
]);
const operator = new Redis(server.url);
await operator.ping();
afterAll(async () => {
  operator.disconnect();
  await Promise.all([server.stop(), database.drop()]);
});

const isBusy = (redis: Redis) =>
  redis.ping().then(
    () => false,
    (error: unknown) => String(error).includes("BUSY"),
  );

/** Runs an endless script while `use` runs. `end` kills the script. */
async function whileBusy(use: (end: () => Promise<unknown>) => Promise<void>): Promise<void> {
  const scripting = new Redis(server.url);
  const script = scripting.eval("while true do end", 0).catch(() => undefined);
  await eventually(() => isBusy(operator));
  let isKilled = false;
  const end = async () => {
    isKilled ||= (await operator.script("KILL")) === "OK";
    await script;
  };
  try {
    await use(end);
  } finally {
    if (!isKilled) await end();
    scripting.disconnect();
  }
}

test("a start that meets BUSY behind a ready connection waits until Redis takes commands", async () => {
  const redis = new Redis(server.url);
  await redis.ping();
  await whileBusy(async (end) => {
    let isStarted = false;
    const starting = awaitSingleRedis(redis, "test", pino({ level: "silent" })).then(() => {
      isStarted = true;
    });
    // The reply to this comes behind the one to what the start has asked.
    expect(await isBusy(redis)).toBe(true);
    await nextTurn();
    expect(isStarted).toBe(false);
    await end();
    await starting;
  });
  redis.disconnect();
});

test("started while Redis is busy, a process waits, and starts once the script has ended", async () => {
  await whileBusy(async (end) => {
    const environment = { ...usualSettings, DATABASE_URL: processUrlOf(database.url), REDIS_URL: server.url };
    const started = new RunningProcess("worker/main.ts", environment);
    try {
      await started.line("still waiting for Redis");
      await end();
      await started.line("started");
      expect(started.errors).toEqual([]);
    } finally {
      await started.destroy();
    }
  });
});

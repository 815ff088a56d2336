import { setTimeout as sleep } from "node:timers/promises";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Say } from "../report.ts";
import { faults } from "./faults.ts";
import type { PlannedFault } from "./plan.ts";
import type { Cluster } from "./cluster.ts";

const atOnceMax = 2;
const endMsMax = 30_000;

/** Hurts the world as planned, until it is told to stop; then everything is mended. @returns what was done. */
export async function injectFaults(
  world: Cluster,
  planned: readonly PlannedFault[],
  stop: AbortSignal,
  say: Say,
): Promise<PlannedFault[]> {
  const done: PlannedFault[] = [];
  const going = new Set<Promise<void>>();
  for (const fault of planned) {
    await sleep(fault.afterMs, undefined, { signal: stop }).catch(() => undefined);
    while (going.size >= atOnceMax && !stop.aborted) await Promise.race(going);
    if (stop.aborted) break;
    done.push(fault);
    say(`  ${fault.name}, for ${fault.lastsMs} ms`);
    const one = inject(world, fault, stop, say).finally(() => going.delete(one));
    going.add(one);
  }
  await Promise.all(going);
  return done;
}

async function inject(world: Cluster, fault: PlannedFault, stop: AbortSignal, say: Say): Promise<void> {
  // A fault that meets another one may fail to begin or to end; mend() makes that good.
  const failed = (error: unknown) =>
    say(`  (${fault.name}: ${error instanceof Error ? error.message : String(error)})`);
  try {
    const end = await faults[fault.name](world, fault);
    await sleep(fault.lastsMs, undefined, { signal: stop }).catch(() => undefined);
    await Promise.race([end(), sleep(endMsMax, undefined, { ref: false })]);
  } catch (error) {
    failed(error);
  }
}

/** Makes everything well again, whatever was done to it. */
export async function mend(world: Cluster): Promise<void> {
  const { servers } = world;
  world.provider.ail(undefined);
  for (const slot of world.slots) slot.mend();
  servers.freeDisk();
  servers.redis.kill("SIGCONT");
  servers.signalPostgres("SIGCONT");
  await servers.ensurePostgres();
  await servers.ensureRedis();
  await world.service.until(async () => {
    await servers.onRedis("script", "kill").catch(() => undefined); // Only where one runs.
    await servers.onRedis("replicaof", "no", "one");
    await servers.onRedis("config", "set", "maxmemory", "0");
    return (await servers.onRedis("ping")) === "PONG";
  });
  await asOwner(servers.postgres.url, async (client) => {
    await client.query("set default_transaction_read_only = off");
    await client.query("alter system reset default_transaction_read_only");
    await client.query("select pg_reload_conf()");
    await client.query("update organizations set suspended_at = null");
  });
  await world.untilAllReady();
}

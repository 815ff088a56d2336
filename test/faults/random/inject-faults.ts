import { setTimeout as sleep } from "node:timers/promises";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Say } from "../report.ts";
import type { Cluster } from "./cluster.ts";
import { faults } from "./faults.ts";
import type { PlannedFault } from "./plan.ts";

const atOnceMax = 2;
const endMsMax = 30_000;

/** Injects the planned faults until `stop` aborts. Call `mend` afterwards. @returns the injected faults. */
export async function injectFaults(
  cluster: Cluster,
  planned: readonly PlannedFault[],
  stop: AbortSignal,
  say: Say,
): Promise<PlannedFault[]> {
  const injected: PlannedFault[] = [];
  const active = new Set<Promise<void>>();
  for (const fault of planned) {
    await sleep(fault.afterMs, undefined, { signal: stop }).catch(() => undefined);
    while (active.size >= atOnceMax && !stop.aborted) await Promise.race(active);
    if (stop.aborted) break;
    injected.push(fault);
    say(`  ${fault.name}, for ${fault.lastsMs} ms`);
    const one = inject(cluster, fault, stop, say).finally(() => active.delete(one));
    active.add(one);
  }
  await Promise.all(active);
  return injected;
}

async function inject(cluster: Cluster, fault: PlannedFault, stop: AbortSignal, say: Say): Promise<void> {
  try {
    const end = await faults[fault.name](cluster, fault);
    await sleep(fault.lastsMs, undefined, { signal: stop }).catch(() => undefined);
    await Promise.race([end(), sleep(endMsMax, undefined, { ref: false })]);
  } catch (error) {
    // A fault that coincides with another may fail to begin or to end; mend() repairs that.
    say(`  (${fault.name}: ${error instanceof Error ? error.message : String(error)})`);
  }
}

/** Ends all faults, whatever is left of them. */
export async function mend(cluster: Cluster): Promise<void> {
  const { servers } = cluster;
  cluster.provider.fail(undefined);
  for (const process of cluster.processes) process.mend();
  servers.freeDisk();
  servers.redis.kill("SIGCONT");
  servers.signalPostgres("SIGCONT");
  await servers.ensurePostgres();
  await servers.ensureRedis();
  await cluster.service.until(async () => {
    await servers.onRedis("script", "kill").catch(() => undefined); // Refused if no script runs.
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
  await cluster.untilReady();
}

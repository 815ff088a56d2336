import type { RunningProcess } from "../../harness/processes/process.ts";
import type { Proxy } from "../../harness/servers/proxy.ts";
import { delayed, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Drill } from "../drill.ts";

const killAll = (processes: readonly RunningProcess[]) => Promise.all(processes.map((process) => process.destroy()));
const signalAll = (processes: readonly RunningProcess[], signal: NodeJS.Signals) => {
  for (const process of processes) process.kill(signal);
};

/** As a network that is split: nothing arrives, and no connection is closed. @returns mends it. */
async function silence(ways: readonly Proxy[]): Promise<() => Promise<void>> {
  for (const way of ways) way.silence("requests", "replies");
  return async () => {
    for (const way of ways) way.mend();
  };
}

const slowMs = 8_000;

export const processDrills: readonly Drill[] = [
  {
    name: "workers-gone",
    outage: "every worker is killed",
    isTotal: true,
    expects: ["NoWorkerUp", "NoWorkerReports", "SearchesFail"],
    begin: async ({ service, startWorkers }) => {
      await killAll(service.workers);
      return async () => void (await startWorkers());
    },
  },
  {
    name: "workers-frozen",
    outage: "every worker is frozen: its ports are open, but it does nothing",
    isTotal: true,
    expects: ["NoWorkerUp", "NoWorkerReports", "SearchesFail"],
    begin: async ({ service }) => {
      signalAll(service.workers, "SIGSTOP");
      return async () => signalAll(service.workers, "SIGCONT");
    },
  },
  {
    name: "workers-silent",
    outage: "workers are up and scraped, but Redis gets no heartbeat from them",
    isTotal: true,
    expects: ["NoWorkerReports", "RedisUnreachable", "SearchesFail"],
    begin: ({ workersToRedis }) => silence(workersToRedis),
  },
  {
    name: "apis-gone",
    outage: "every API is killed",
    isTotal: true,
    expects: ["NoApiUp"],
    begin: async ({ service, startApi }) => {
      await killAll(service.apis);
      return async () => void (await Promise.all([startApi(), startApi()]));
    },
  },
  {
    name: "api-frozen",
    outage: "one of two APIs is frozen",
    expects: ["OpsTargetDown"],
    begin: async ({ service }) => {
      const first = service.apis.slice(0, 1);
      signalAll(first, "SIGSTOP");
      return async () => signalAll(first, "SIGCONT");
    },
  },
  {
    name: "api-gone",
    outage: "one of two APIs is killed",
    expects: ["ReplicaGone"],
    withinMs: 600_000,
    begin: async ({ service, startApi }) => {
      await killAll(service.apis.slice(0, 1));
      return async () => void (await startApi());
    },
  },
  {
    name: "api-cut-off",
    outage: "one of two APIs is cut off from Redis, and everything else goes on",
    expects: ["RedisUnreachable"],
    begin: ({ apiToRedis }) => silence([apiToRedis]),
  },
  {
    name: "worker-cut-off",
    outage: "one of two workers is cut off from Redis, and everything else goes on",
    expects: ["RedisUnreachable"],
    begin: ({ workersToRedis: [way] }) => silence([way]),
  },
  {
    name: "queue-too-old",
    outage: `the provider takes ${slowMs / 1_000} s, and each worker runs one search at a time`,
    expects: ["QueueTooOld"],
    stack: { settings: { WORKER_CONCURRENCY: "1" } },
    begin: async ({ provider }) => {
      provider.otherwise = delayed(slowMs);
      return async () => {
        provider.otherwise = tenOrganic;
      };
    },
  },
];

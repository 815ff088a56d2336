import { setTimeout as sleep } from "node:timers/promises";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack } from "../attack.ts";

const answeredMsMax = 10_000;
const boundMs = 60_000;
const pauseMs = 50;

/** The Redis host disappears without closing its connections, and another host takes its address. */
export const vanishedRedis: Attack = {
  name: "vanished-redis",
  tried: "the Redis host is replaced without a reset: open connections stay open and go silent",
  stack: { proxiedRedis: true },
  run: async ({ service, redisProxy }) => {
    const { token } = await service.organization();
    await service.until(async () => (await service.search(token, { keyword: "before" })).status === 200);
    redisProxy.replaceHost();
    const statuses: number[] = [];
    const lostAtMs = performance.now();
    while (statuses.at(-1) !== 200 && performance.now() - lostAtMs < boundMs) {
      statuses.push((await service.search(token, { keyword: `again ${statuses.length}` })).status);
      await sleep(pauseMs);
    }
    const tookMs = performance.now() - lostAtMs;
    return [
      {
        promised: `searches are answered again within ${answeredMsMax / 1_000} s`,
        seen: `after ${(tookMs / 1_000).toFixed(1)} s; ${tally(statuses)}`,
        held: statuses.at(-1) === 200 && tookMs <= answeredMsMax,
      },
    ];
  },
};

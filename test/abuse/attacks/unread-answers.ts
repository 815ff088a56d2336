import { setTimeout as sleep } from "node:timers/promises";
import { tally } from "../../faults/scenarios/statistics.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { largestAnswer } from "../callers/answer-sizes.ts";
import { Connection } from "../callers/connection.ts";
import { getBytes, largestFile, searchBytes } from "../callers/requests.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { inMb, MemoryWatch } from "../judges/memory.ts";

const key = "replayed";
const query = { keyword: "replayed", depth: 100 };
const unreadMs: Record<Strength, number> = { quick: 2_000, full: 8_000 };
const grownBytesMax = 200 * 1_048_576;

/** Connections, and requests pipelined on each: beyond and within what a connection may pipeline. */
const shapes: Record<Strength, readonly (readonly [connections: number, requests: number])[]> = {
  quick: [
    [8, 300],
    [40, 9],
  ],
  full: [
    [1, 2_000],
    [8, 2_000],
    [200, 9],
  ],
};

/** Thousands of free responses, none of which is read. */
export const unreadAnswers: Attack = {
  name: "unread-answers",
  tried: `replays of one answer of 2 MB, then ${largestFile}, pipelined on up to 200 connections, unread`,
  run: async (stack, strength) => {
    const { service, provider, apiUrl } = stack;
    const attacker = await service.organization();
    const by = { url: apiUrl, token: attacker.token };
    provider.otherwise = largestAnswer;
    await service.search(by.token, query, { key });
    provider.otherwise = tenOrganic;
    const requests = {
      replays: searchBytes(by, query, { "idempotency-key": key }),
      files: getBytes(apiUrl, largestFile),
    };
    const watches = new Map<string, MemoryWatch>();
    const honest = await judgeHonestBeside(stack, async () => {
      for (const [what, request] of Object.entries(requests)) {
        for (const [connections, count] of shapes[strength]) {
          const watch = await leaveUnread(stack, { requests: request.repeat(count), connections, strength });
          watches.set(`${what} ${connections} × ${count}`, watch);
        }
      }
    });
    await service.rest();
    return [judgeMemory(watches), honest, await judgeLedger(stack, attacker.organizationId)];
  },
};

/** Sends these requests on each connection, reads nothing, and resets after a while. */
async function leaveUnread(
  stack: AttackStack,
  { requests, connections, strength }: { requests: string; connections: number; strength: Strength },
): Promise<MemoryWatch> {
  const watch = new MemoryWatch(stack.api);
  const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(stack.apiUrl)));
  for (const connection of opened) connection.send(requests);
  await sleep(unreadMs[strength]);
  for (const connection of opened) connection.reset();
  return watch.stop();
}

function judgeMemory(watches: ReadonlyMap<string, MemoryWatch>): Finding {
  const all = [...watches.values()];
  const first = Math.min(...all.map(({ beforeBytes }) => beforeBytes));
  const grown = Math.max(...all.map(({ mostBytes }) => mostBytes)) - first;
  return {
    promised: `the API's memory grows by at most ${inMb(grownBytesMax)} MB`,
    seen: [...watches].map(([what, watch]) => `${what}: ${watch.toString()}`).join("; "),
    held: grown <= grownBytesMax,
  };
}

async function judgeLedger({ service }: AttackStack, organizationId: string): Promise<Finding> {
  const kinds = (await service.ledgerOf(organizationId)).map(({ kind }) => kind);
  return {
    promised: "refusals and replays leave no ledger entry",
    seen: tally(kinds),
    held: !kinds.includes("refund"),
  };
}

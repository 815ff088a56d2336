import { countCharges } from "../../faults/audit/accounts.ts";
import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import { exchange } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { inMb, MemoryWatch, redisBytes } from "../judges/memory.ts";

const oneKey = "one-key";
const connections = 50;
const atOnce = 8;
const firstMs = 500;
const grownBytesMax = 200 * 1_048_576;
const queries: Record<Strength, number> = { quick: 800, full: 40_000 };

/** Distinct queries under one Idempotency-Key, while its first search runs and afterwards. */
export const oneKeyManyQueries: Attack = {
  name: "one-key-many-queries",
  tried: `searches under one Idempotency-Key, each with another query, ${connections} × ${atOnce} at once`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = (request, response) =>
      delayed(isAttackers(request.body["q"]) ? firstMs : 0)(request, response);
    // The window is so large that the API checks each request.
    const attacker = await service.organization({ terms: { windowLimit: 1_000_000 } });
    const memory = new MemoryWatch(stack.api);
    const before = await redisBytes(service.redis);
    let outcomes: string[] = [];
    const honest = await judgeHonestBeside(stack, async () => {
      const asking = await callEach(queries[strength] / atOnce, connections, (n) => askOthers(stack, attacker, n));
      outcomes = asking.flat();
    });
    const grownBytes = (await redisBytes(service.redis)) - before;
    return [await judgeCharges(stack, attacker, outcomes), judgeMemory(memory.stop(), grownBytes), honest];
  },
};

const isAttackers = (keyword: unknown) => String(keyword).startsWith("other query");

async function askOthers({ apiUrl: url }: AttackStack, { token }: Organization, connection: number): Promise<string[]> {
  const requests = Array.from({ length: atOnce }, (_, n) =>
    searchBytes({ url, token }, { keyword: `other query ${connection} ${n}` }, { "idempotency-key": oneKey }),
  );
  return (await exchange(url, requests)).map(outcomeOf);
}

async function judgeCharges(
  { service, provider }: AttackStack,
  { organizationId }: Organization,
  outcomes: readonly string[],
): Promise<Finding> {
  await service.rest();
  const charges = await countCharges(service.database, organizationId);
  const calls = provider.requests.filter(({ body }) => isAttackers(body["q"])).length;
  const answered = outcomes.filter((outcome) => outcome === "200").length;
  const reused = outcomes.filter((outcome) => outcome === "400 idempotency_key_reused").length;
  return {
    promised: "one answer, one provider call, one charge; every other query gets 400 idempotency_key_reused",
    seen: `${calls} calls, ${charges} charges; ${tally(outcomes)}`,
    held: charges === 1 && calls === 1 && answered === 1 && reused === outcomes.length - 1 && reused > 0,
  };
}

const judgeMemory = (memory: MemoryWatch, redisGrownBytes: number): Finding => ({
  promised: `neither the API nor Redis grows by more than ${inMb(grownBytesMax)} MB`,
  seen: `API ${memory.toString()}, Redis by ${inMb(redisGrownBytes)} MB`,
  held: memory.grownBytes <= grownBytesMax && redisGrownBytes <= grownBytesMax,
});

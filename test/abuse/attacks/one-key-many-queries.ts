import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { inMb, MemoryWatch, redisBytes } from "../judges/memory.ts";

const key = "one-key";
const connections = 50;
const atOnce = 8;
const providerMs = 500;
const idleMs = 60_000;
const grownBytesMax = 200 * 1_048_576;
const queries: Record<Strength, number> = { quick: 800, full: 40_000 };

/** Ever other queries under one Idempotency-Key, while its first search runs and afterwards. */
export const oneKeyManyQueries: Attack = {
  name: "one-key-many-queries",
  tried: `searches under one Idempotency-Key, each with another query, ${connections} × ${atOnce} at once`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = (request, response) =>
      setTimeout(tenOrganic, isAttackers(request.body["q"]) ? providerMs : 0, request, response);
    const [api] = service.apis;
    if (!api) throw new Error("there is no API");
    // A window that refuses none of them, so that each is looked at.
    const attacker = await service.organization({ terms: { windowLimit: 1_000_000 } });
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const memory = new MemoryWatch(api);
    const before = await redisBytes(service.redis);
    const outcomes: string[] = [];
    const answers = await honestBeside(stack, honest, () =>
      Promise.all(
        Array.from({ length: connections }, async (_, connection) => {
          for (let n = 0; n * connections * atOnce < queries[strength]; n += 1)
            outcomes.push(...(await askOthers(stack, attacker, `${connection} ${n}`)));
        }),
      ),
    );
    const grownBytes = (await redisBytes(service.redis)) - before;
    return [
      await judgeCharges(stack, attacker, outcomes),
      judgeMemory(memory.stop(), grownBytes),
      judgeHonest(answers),
    ];
  },
};

const isAttackers = (keyword: unknown) => String(keyword).startsWith("other query");

async function askOthers({ apiUrl: url }: AttackStack, { token }: Organization, name: string): Promise<string[]> {
  const connection = await Connection.open(url);
  const requests = Array.from({ length: atOnce }, (_, n) =>
    searchBytes({ url, token }, { keyword: `other query ${name} ${n}` }, { "idempotency-key": key }),
  );
  connection.send(requests.join(""));
  const whole = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
  await connection.readUntil(() => whole().length === atOnce, idleMs);
  connection.reset();
  return whole().map(outcomeOf);
}

async function judgeCharges(
  { service, provider }: AttackStack,
  { organizationId }: Organization,
  outcomes: readonly string[],
): Promise<Finding> {
  await service.rest();
  const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
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

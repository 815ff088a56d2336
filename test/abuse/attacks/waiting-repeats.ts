import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { Connection } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";

const providerMs = 2_000;
const boundMs = 60_000;
const repeats: Record<Strength, number> = { quick: 300, full: 2_000 };

/** Repeats of one request that wait for its answer, by the thousand. */
export const waitingRepeats: Attack = {
  name: "waiting-repeats",
  tried: `repeats under one Idempotency-Key while the first request runs for ${providerMs / 1_000} s, each on a connection`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = (request, response) =>
      setTimeout(tenOrganic, request.body["q"] === "repeated" ? providerMs : 0, request, response);
    const attacker = await service.organization();
    const by = { url: stack.apiUrl, token: attacker.token };
    const outcomes: string[] = [];
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const answers = await honestBeside(stack, honest, () =>
      Promise.all(
        Array.from({ length: repeats[strength] }, async () => {
          const connection = await Connection.open(by.url);
          connection.send(searchBytes(by, { keyword: "repeated" }, { "idempotency-key": "repeated" }));
          const whole = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
          await connection.readUntil(() => whole().length > 0, boundMs);
          connection.reset();
          outcomes.push(...whole().map(outcomeOf));
        }),
      ),
    );
    const calls = provider.requests.filter(({ body }) => body["q"] === "repeated").length;
    await service.rest();
    const charges = (await service.ledgerOf(attacker.organizationId)).filter(({ kind }) => kind === "charge").length;
    return [
      {
        promised: "one provider call, one charge, and every repeat ends",
        seen: `${calls} calls, ${charges} charges; ${tally(outcomes)}`,
        held: calls === 1 && charges === 1 && outcomes.length === repeats[strength],
      },
      judgeHonest(answers),
    ];
  },
};

import { countCharges } from "../../faults/audit/accounts.ts";
import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { exchange } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";

const providerMs = 2_000;
const key = { "idempotency-key": "repeated" };
const repeats: Record<Strength, number> = { quick: 300, full: 2_000 };

/** Thousands of repeats wait for the answer of one request. */
export const waitingRepeats: Attack = {
  name: "waiting-repeats",
  tried: `repeats under one Idempotency-Key while the first request runs for ${providerMs / 1_000} s, each on its own connection`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = (request, response) =>
      delayed(request.body["q"] === "repeated" ? providerMs : 0)(request, response);
    const attacker = await service.organization();
    const by = { url: stack.apiUrl, token: attacker.token };
    let outcomes: string[] = [];
    const honest = await judgeHonestBeside(stack, async () => {
      const repeat = () => exchange(by.url, [searchBytes(by, { keyword: "repeated" }, key)]);
      outcomes = (await callEach(repeats[strength], repeats[strength], repeat)).flat().map(outcomeOf);
    });
    const calls = provider.requests.filter(({ body }) => body["q"] === "repeated").length;
    await service.rest();
    const charges = await countCharges(service.database, attacker.organizationId);
    return [
      {
        promised: "one provider call, one charge, and every repeat ends",
        seen: `${calls} calls, ${charges} charges; ${tally(outcomes)}`,
        held: calls === 1 && charges === 1 && outcomes.length === repeats[strength],
      },
      honest,
    ];
  },
};

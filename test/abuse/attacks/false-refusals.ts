import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";

const priceMils = 5;
const searches = 40;
const inFlight = 12;
const rounds: Record<Strength, number> = { quick: 2, full: 25 };

/** An honest caller has credit for exactly its searches, and two workers change its balance at once. */
export const falseRefusals: Attack = {
  name: "false-refusals",
  tried: `${searches} searches over two workers, ${inFlight} at once, with credit for exactly ${searches}`,
  stack: { workers: 2 },
  run: async ({ service, callers, apiUrl }, strength) => {
    const statuses: number[] = [];
    for (let round = 0; round < rounds[strength]; round += 1) {
      const { token } = await service.organization({ creditMils: searches * priceMils });
      const answers = await callEach(searches, inFlight, (n) => callers.search(apiUrl, token, `exact ${round} ${n}`));
      statuses.push(...answers.map(({ status }) => status));
    }
    await service.rest();
    return [
      {
        promised: "no 402 as long as there is credit",
        seen: `${statuses.length} searches: ${tally(statuses)}`,
        held: statuses.every((status) => status === 200),
      },
    ];
  },
};

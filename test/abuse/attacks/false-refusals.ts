import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";

const priceMils = 5;
const searches = 40;
const inFlight = 12;
const rounds: Record<Strength, number> = { quick: 2, full: 25 };

/** An honest caller with credit for exactly its searches, whose balance two workers change at once. */
export const falseRefusals: Attack = {
  name: "false-refusals",
  tried: `${searches} searches over two workers, ${inFlight} at once, with credit for exactly ${searches}`,
  stack: { workers: 2 },
  run: async (stack, strength) => {
    const statuses: number[] = [];
    for (let round = 0; round < rounds[strength]; round += 1) statuses.push(...(await spendAll(stack, round)));
    await stack.service.rest();
    return [
      {
        promised: "no 402 as long as there is credit",
        seen: `${statuses.length} searches: ${tally(statuses)}`,
        held: statuses.every((status) => status === 200),
      },
    ];
  },
};

async function spendAll({ service, callers, apiUrl }: AttackStack, round: number): Promise<number[]> {
  const { token } = await service.organization({ creditMils: searches * priceMils });
  const statuses: number[] = [];
  let sent = 0;
  await keepInFlight(inFlight, async () => {
    if (sent === searches) return false;
    const number = sent++;
    statuses.push((await callers.search(apiUrl, token, `exact ${round} ${number}`)).status);
    return true;
  });
  return statuses;
}

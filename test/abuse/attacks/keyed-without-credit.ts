import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { commitsOf } from "../judges/transactions.ts";

const inFlight = 16;
const commitsShareMax = 0.2;
const refusals: Record<Strength, number> = { quick: 600, full: 3_000 };

/** Refusals that ask Postgres, by an organization that cannot pay. */
export const keyedWithoutCredit: Attack = {
  name: "keyed-without-credit",
  tried: "searches under ever new Idempotency-Keys by an organization without credit",
  run: async (stack, strength) => {
    const { service, callers } = stack;
    const { token } = await service.organization({ creditMils: 0 });
    const before = await commitsOf(stack);
    const statuses: number[] = [];
    let sent = 0;
    await keepInFlight(inFlight, async () => {
      if (sent === refusals[strength]) return false;
      const number = sent++;
      statuses.push((await callers.search(stack.apiUrl, token, `poor ${number}`, `poor-${number}`)).status);
      return true;
    });
    const commits = (await commitsOf(stack)) - before;
    const share = commits / statuses.length;
    return [
      {
        promised: `at most ${commitsShareMax} transactions in Postgres a refusal`,
        seen: `${tally(statuses)}; ${commits} transactions, ${share.toFixed(2)} each`,
        held: share <= commitsShareMax && statuses.every((status) => status === 402 || status === 429),
      },
    ];
  },
};

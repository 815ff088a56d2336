import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { commitsOf } from "../judges/transactions.ts";

const inFlight = 16;
const commitsShareMax = 0.2;
const refusals: Record<Strength, number> = { quick: 600, full: 3_000 };

/** An organization without credit causes refusals that query Postgres. */
export const keyedWithoutCredit: Attack = {
  name: "keyed-without-credit",
  tried: "searches under new Idempotency-Keys by an organization without credit",
  run: async (stack, strength) => {
    const { service, callers, apiUrl } = stack;
    const { token } = await service.organization({ creditMils: 0 });
    const before = await commitsOf(stack);
    const search = (n: number) => callers.search(apiUrl, token, `poor ${n}`, `poor-${n}`);
    const statuses = (await callEach(refusals[strength], inFlight, search)).map(({ status }) => status);
    const commits = (await commitsOf(stack)) - before;
    const share = commits / statuses.length;
    return [
      {
        promised: `at most ${commitsShareMax} Postgres transactions per refusal`,
        seen: `${tally(statuses)}; ${commits} transactions, ${share.toFixed(2)} each`,
        held: share <= commitsShareMax && statuses.every((status) => status === 402 || status === 429),
      },
    ];
  },
};

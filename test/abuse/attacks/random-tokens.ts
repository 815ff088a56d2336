import { newToken } from "../../../api/tokens/tokens.ts";
import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { exchange } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";

const sockets = 64;
const atOnce = 4;
const tokens: Record<Strength, number> = { quick: 500, full: 20_000 };

/** Well-formed tokens that were never issued, so that only Postgres can refuse them. */
export const randomTokens: Attack = {
  name: "random-tokens",
  tried: `searches with distinct random tokens of the right form, on ${sockets} connections`,
  run: async (stack, strength) => {
    const outcomes: string[] = [];
    const honest = await judgeHonestBeside(stack, () =>
      keepInFlight(sockets, async () => {
        outcomes.push(...(await guess(stack.apiUrl)));
        return outcomes.length < tokens[strength];
      }),
    );
    return [
      {
        promised: "none is accepted",
        seen: tally(outcomes),
        held: outcomes.length > 0 && !outcomes.includes("200"),
      },
      honest,
    ];
  },
};

/** Pipelines a few guesses on one connection. */
async function guess(url: string): Promise<string[]> {
  const guesses = Array.from({ length: atOnce }, () => searchBytes({ url, token: newToken() }, { keyword: "guess" }));
  return (await exchange(url, guesses)).map(outcomeOf);
}

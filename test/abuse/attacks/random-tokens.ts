import { newToken } from "../../../api/tokens/tokens.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { Connection } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const sockets = 64;
const atOnce = 4;
const idleMs = 60_000;
const tokens: Record<Strength, number> = { quick: 500, full: 20_000 };

/** Tokens that were never issued and whose form is right, so that only Postgres can refuse them. */
export const randomTokens: Attack = {
  name: "random-tokens",
  tried: `searches with random tokens of the right form, each another, on ${sockets} connections`,
  run: async (stack, strength) => {
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const outcomes: string[] = [];
    const answers = await honestBeside(stack, honest, () =>
      Promise.all(
        Array.from({ length: sockets }, async () => {
          while (outcomes.length < tokens[strength]) outcomes.push(...(await guess(stack.apiUrl)));
        }),
      ),
    );
    return [
      {
        promised: "none is let in",
        seen: tally(outcomes),
        held: outcomes.length > 0 && !outcomes.includes("200"),
      },
      judgeHonest(answers),
    ];
  },
};

/** Tries a few tokens on one connection, all before the first answer. */
async function guess(url: string): Promise<string[]> {
  const connection = await Connection.open(url);
  for (let n = 0; n < atOnce; n += 1) connection.send(searchBytes({ url, token: newToken() }, { keyword: "guess" }));
  const answered = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
  await connection.readUntil(() => answered().length === atOnce, idleMs);
  connection.reset();
  return answered().map(outcomeOf);
}

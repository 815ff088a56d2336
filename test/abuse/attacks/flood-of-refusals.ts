import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Strength } from "../attack.ts";
import { Connection } from "../callers/connection.ts";
import { type Credential, post, searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const connections = 16;
const idleMs = 60_000;
const refusals: Record<Strength, number> = { quick: 1_500, full: 30_000 };

/** The requests of one round on one connection. None of them can be answered with results. */
const roundOf = (by: Credential, n: number): string[] => [
  searchBytes(by, { keyword: 1 }),
  searchBytes(by, { keyword: `poor ${n}` }),
  searchBytes(by, { keyword: `poor ${n}` }, { "idempotency-key": `poor-${n}` }),
  post(
    by,
    "/mcp",
    { jsonrpc: "2.0", id: n, method: "tools/call", params: { name: "none", arguments: {} } },
    mcpHeaders,
  ),
];
const mcpHeaders = { accept: "application/json, text/event-stream" };

/** Requests that are refused and cost nothing, by one organization at full speed. */
export const floodOfRefusals: Attack = {
  name: "flood-of-refusals",
  tried: `invalid requests, unpaid searches with and without keys, unknown tools, on ${connections} connections`,
  run: async (stack, strength) => {
    const attacker = await stack.service.organization({ creditMils: 0, terms: { windowLimit: 60 } });
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const outcomes: string[] = [];
    const answers = await honestBeside(stack, honest, () =>
      Promise.all(
        Array.from({ length: connections }, async () => {
          while (outcomes.length < refusals[strength])
            outcomes.push(...(await beRefused(stack.apiUrl, attacker, outcomes.length)));
        }),
      ),
    );
    const rows = (await stack.service.ledgerOf(attacker.organizationId)).length;
    return [
      {
        promised:
          "beyond ten rate windows an organization's refusals are answered from memory: 429 with the reason refused",
        seen: tally(outcomes),
        held: outcomes.includes("429 refused"),
      },
      { promised: "refusals leave no ledger entry", seen: `${rows} entries`, held: rows === 0 },
      judgeHonest(answers),
    ];
  },
};

async function beRefused(url: string, { token }: Organization, n: number): Promise<string[]> {
  const connection = await Connection.open(url);
  const requests = roundOf({ url, token }, n);
  connection.send(requests.join(""));
  const answered = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
  await connection.readUntil(() => answered().length === requests.length, idleMs);
  connection.reset();
  return answered().map(outcomeOf);
}

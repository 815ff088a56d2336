import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Attack, Strength } from "../attack.ts";
import { exchange } from "../callers/connection.ts";
import { type Credential, post, searchBytes } from "../callers/requests.ts";
import { outcomeOf } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";

const connections = 16;
const refusals: Record<Strength, number> = { quick: 1_500, full: 30_000 };

/** The requests of one round on one connection. Each is refused. */
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

/** One organization sends requests that are refused and cost nothing, at full speed. */
export const floodOfRefusals: Attack = {
  name: "flood-of-refusals",
  tried: `invalid requests, unpaid searches with and without keys, unknown tools, on ${connections} connections`,
  run: async (stack, strength) => {
    const attacker = await stack.service.organization({ creditMils: 0, terms: { windowLimit: 60 } });
    const by = { url: stack.apiUrl, token: attacker.token };
    const outcomes: string[] = [];
    const honest = await judgeHonestBeside(stack, () =>
      keepInFlight(connections, async () => {
        outcomes.push(...(await exchange(by.url, roundOf(by, outcomes.length))).map(outcomeOf));
        return outcomes.length < refusals[strength];
      }),
    );
    const rows = (await stack.service.ledgerOf(attacker.organizationId)).length;
    return [
      {
        promised: "beyond ten rate windows, the API refuses an organization from memory: 429 with the reason refused",
        seen: tally(outcomes),
        held: outcomes.includes("429 refused"),
      },
      { promised: "refusals leave no ledger entry", seen: `${rows} entries`, held: rows === 0 },
      honest,
    ];
  },
};

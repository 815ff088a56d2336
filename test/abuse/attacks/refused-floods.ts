import { callEach, keepInFlight, outcomeOfAnswer } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Attack, Strength } from "../attack.ts";
import { exchange } from "../callers/connection.ts";
import { type Credential, post, searchBytes } from "../callers/requests.ts";
import { outcomeOf } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";

/** Floods of requests that are refused. None may cost the service much, or starve honest callers. */

const connections = 16;
const refusalsMin: Record<Strength, number> = { quick: 1_500, full: 30_000 };

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
        return outcomes.length < refusalsMin[strength];
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

const atOnce = 16;
const windowLimit = 600;
/** Ten refused searches, and one row that counts the others. */
const loggedPerMinuteMax = 11;
const unsupported: Record<Strength, number> = { quick: 500, full: 10_000 };

/** Searches that always fail and cost nothing: no provider of the worker supports mobile devices. */
export const unsupportedQueries: Attack = {
  name: "unsupported-queries",
  tried: `searches that no provider supports, half of them under new keys, ${atOnce} at once`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    // The window outlasts the attack, so that its key stays in Redis.
    const attacker = await service.organization({ terms: { windowSeconds: 1_000_000, windowLimit } });
    await service.usage(attacker.token); // It stores what the first use of a token stores.
    const keysOf = async () => (await service.redis.keys(`*${attacker.organizationId}*`)).length;
    await service.rest();
    const [rowsBefore, keysBefore] = [await rowsOf(stack, attacker), await keysOf()];
    const callsBefore = provider.requests.length;
    const beganAtMs = performance.now();
    const outcomes = await failAll(stack, attacker, unsupported[strength]);
    await service.rest();
    const minutes = Math.ceil((performance.now() - beganAtMs) / 60_000) + 1;
    const [rows, keys] = [(await rowsOf(stack, attacker)) - rowsBefore, (await keysOf()) - keysBefore];
    const calls = provider.requests.length - callsBefore;
    return [
      {
        promised: "each is refused by the API: 400 unsupported, then 429 refused beyond ten rate windows",
        seen: `${tally(outcomes)}; ${calls} provider calls`,
        held: calls === 0 && outcomes.every((outcome) => /^(400 unsupported|429 refused)$/.test(outcome)),
      },
      {
        promised: `they leave at most ${loggedPerMinuteMax} rows a minute in Postgres, and no key in Redis`,
        seen: `${rows} rows in ${minutes} minutes or less; ${keys} keys`,
        held: rows <= loggedPerMinuteMax * minutes && keys === 0,
      },
    ];
  },
};

const failAll = ({ callers, apiUrl }: AttackStack, { token }: Organization, count: number): Promise<string[]> =>
  callEach(count, atOnce, async (n) => {
    const key = n % 2 === 0 ? `unsupported-${n}` : undefined;
    return outcomeOfAnswer(await callers.search(apiUrl, token, { keyword: `failed ${n}`, device: "mobile" }, key));
  });

/** The number of rows in all tables, without refused searches of others: their counts are written when a minute ends. */
async function rowsOf({ service }: AttackStack, { organizationId }: Organization): Promise<number> {
  return asOwner(service.databaseUrl, async (owner) => {
    const tables = await owner.query(
      "select oid::regclass as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
    );
    const counts = tables.rows.map(({ name }) => `(select count(*) from ${name})`);
    const ofOthers = "(select count(*) from refused_searches where organization_id <> $1)";
    const { rows } = await owner.query(`select ${counts.join(" + ")} - ${ofOthers} as rows`, [organizationId]);
    return Number(rows[0].rows);
  });
}

import { Pool } from "undici";
import { formatTable } from "../../shared/admin/format-table.ts";
import { currentMessage } from "../harness/clients/agent.ts";
import { withOwnServers } from "../harness/servers/own-servers.ts";

const connections = 32;
const turns = 3;
const keyword = "best coffee beans";

interface Endpoint {
  name: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  answered: number;
}

/**
 * Searches per second over each protocol, with one API and one worker on this machine. The protocols take turns, so that other
 * load on the machine affects all of them.
 */
export function measureThroughput({ ms }: { ms: number }): Promise<string> {
  return withOwnServers(async (service) => {
    const plan = { windowLimit: 100_000_000, concurrency: 1_000 };
    const { token } = await service.organization({ creditMils: 100_000_000, terms: plan });
    const pool = new Pool(service.apis[0]?.url ?? "", { connections });
    const endpoints = endpointsFor(token);
    for (const endpoint of endpoints) await sendSearches(pool, endpoint, ms / 2);
    for (const endpoint of endpoints) endpoint.answered = 0;
    for (let turn = 0; turn < turns; turn += 1)
      for (const endpoint of endpoints) await sendSearches(pool, endpoint, ms);
    await pool.close();
    const [rest] = endpoints;
    const lines = endpoints.map(({ name, answered }) => {
      const perSecond = Math.round((answered * 1_000) / (turns * ms));
      return [name, String(perSecond), (answered / (rest?.answered ?? 1)).toFixed(2)];
    });
    return formatTable(["protocol", "searches per second", "× REST"], lines);
  });
}

function endpointsFor(token: string): Endpoint[] {
  const authorization = `Bearer ${token}`;
  const rest = { "content-type": "application/json", authorization };
  const { headers, body } = currentMessage("tools/call", { name: "serp.search", arguments: { keyword } });
  const { accept, ...known } = { ...headers, authorization };
  const params = { name: "serp.search", arguments: { keyword } };
  const older = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  return [
    { name: "REST", path: "/v1/serp/search", headers: rest, body: JSON.stringify({ keyword }), answered: 0 },
    { name: "MCP 2026-07-28", path: "/mcp", headers: { accept, ...known }, body, answered: 0 },
    { name: "MCP 2025-11-25", path: "/mcp", headers: { accept, ...rest }, body: older, answered: 0 },
  ];
}

async function sendSearches(pool: Pool, endpoint: Endpoint, ms: number): Promise<void> {
  const endsAtMs = performance.now() + ms;
  const { path, headers, body } = endpoint;
  const callers = Array.from({ length: connections }, async () => {
    while (performance.now() < endsAtMs) {
      const answer = await pool.request({ method: "POST", path, headers, body });
      const text = await answer.body.text();
      if (answer.statusCode !== 200 || !text.includes("creditsCharged")) throw new Error(`${endpoint.name}: ${text}`);
      endpoint.answered += 1;
    }
  });
  await Promise.all(callers);
}

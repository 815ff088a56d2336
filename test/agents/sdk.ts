import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { AgentTask, Report } from "./agent.ts";

/** The official SDK in its first major version, which most agents use. */
export function sdk(task: AgentTask): Promise<Report> {
  const requestInit = { headers: { authorization: `Bearer ${task.token}` } };
  return callOver(new StreamableHTTPClientTransport(new URL(task.url), { requestInit }), task);
}

/** Runs the task with the official SDK over any transport. */
export async function callOver(transport: Transport, { keywords }: AgentTask): Promise<Report> {
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const answers = [];
  for (const keyword of keywords) answers.push(await client.callTool({ name: "serp_search", arguments: { keyword } }));
  answers.push(await client.callTool({ name: "usage_get", arguments: {} }));
  await client.close();
  return { tools: tools.map(({ name }) => name), answers };
}

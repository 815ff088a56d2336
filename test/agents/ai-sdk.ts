import { createMCPClient } from "@ai-sdk/mcp";
import type { AgentTask, Report } from "./agent.ts";

/** The client of the AI SDK, which hands the tools to a model. */
export async function aiSdk({ url, token, keywords }: AgentTask): Promise<Report> {
  const headers = { authorization: `Bearer ${token}` };
  const client = await createMCPClient({ transport: { type: "http", url, headers } });
  const tools = await client.tools();
  const call = (name: string, input: object) =>
    tools[name]?.execute(input, { toolCallId: "1", messages: [], context: {} });
  const answers = [];
  for (const keyword of keywords) answers.push(await call("serp_search", { keyword }));
  answers.push(await call("usage_get", {}));
  await client.close();
  return { tools: Object.keys(tools), answers };
}

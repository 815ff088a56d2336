import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import type { AgentTask, Report } from "./agent.ts";

/** LangChain's adapters, which make a LangChain tool of each tool. */
export async function langchain({ url, token, keywords }: AgentTask): Promise<Report> {
  const headers = { authorization: `Bearer ${token}` };
  const client = new MultiServerMCPClient({ mcpServers: { serpmill: { transport: "http", url, headers } } });
  const tools = await client.getTools();
  const call = (wanted: string, input: object): Promise<unknown> | undefined =>
    tools.find(({ name }) => name === wanted)?.invoke(input);
  const answers = [];
  for (const keyword of keywords) answers.push(await call("serp_search", { keyword }));
  answers.push(await call("usage_get", {}));
  await client.close();
  return { tools: tools.map(({ name }) => name), answers };
}
